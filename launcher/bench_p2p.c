/* SPDX-License-Identifier: Apache-2.0
 * bench_p2p.c - `strait bench p2p`: what a transport gives between rank 0 and each other
 * rank, one pair at a time. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "bench.h"
#include "transport/transport.h"

enum { WINDOW = 16, TAG_DATA = 1, TAG_ANSWER = 2, SPINS = 1000 };

static const double timeout_s = 60;
static const double turn_s = 3600; /* a rank waits until the pairs before it are done */

struct pair {
    struct transport *transport;
    int peer; /* the other one */
    bool leads;
    uint8_t *out, *in;
    size_t bytes;
};

static void print_help(void)
{
    printf("Usage: mpirun -np N strait bench p2p [OPTIONS]\n\n"
           "Half a round trip, and the rate with %d messages under way, between rank 0 and each\n"
           "other rank in turn: the columns lat_us_R and gbs_R for rank R.\n\n"
           "  --sizes RANGE    bytes: 1M, 4K:256M or 4K:256M:2 (default 4:4M:8)\n"
           "  --transport T    ucx or mpi (default ucx)\n"
           "  --repeat N       measurements, of which the median counts (default 7)\n"
           "  --format F       text, csv or json (default text)\n", WINDOW);
}

/* Wait like the progress thread does: spin a little, then sleep. */
static strait_status finish(struct pair *p, struct transfer *transfer, const char *what)
{
    struct transport *t = p->transport;
    double begin = clock_s();

    for (int idle = 0; transfer->state == TRANSFER_ACTIVE; idle++) {
        if (transport_progress(t)) idle = 0;
        else if (idle > SPINS) t->ops->wait(t, -1, 1000);
        if (idle <= SPINS || clock_s() - begin <= timeout_s) continue;
        transport_cancel(t, transfer);
        return error_set(STRAIT_ERR_TIMEOUT, "%s rank %d on %s took more than %.0f s", what,
                         p->peer, cluster_host(t->cluster, p->peer), timeout_s);
    }
    return transfer->state == TRANSFER_DONE ? STRAIT_OK : transfer_error(t, transfer, what);
}

static strait_status send_one(struct pair *p, uint32_t tag, size_t bytes)
{
    struct transfer transfer;

    transport_send(p->transport, p->peer, tag, p->out, bytes, &transfer);
    return finish(p, &transfer, "sending to");
}

static strait_status receive_one(struct pair *p, uint32_t tag, size_t bytes)
{
    struct transfer transfer;

    transport_recv(p->transport, p->peer, tag, p->in, bytes, &transfer);
    return finish(p, &transfer, "receiving from");
}

static strait_status round_trip(struct pair *p)
{
    strait_status st = p->leads ? send_one(p, TAG_DATA, p->bytes)
                                : receive_one(p, TAG_DATA, p->bytes);

    if (st != STRAIT_OK) return st;
    return p->leads ? receive_one(p, TAG_DATA, p->bytes) : send_one(p, TAG_DATA, p->bytes);
}

/* WINDOW messages one way, and a short answer when all have come. */
static strait_status burst(struct pair *p)
{
    struct transfer transfers[WINDOW];
    strait_status st = STRAIT_OK;

    for (int i = 0; i < WINDOW; i++) {
        if (p->leads)
            transport_send(p->transport, p->peer, TAG_DATA, p->out, p->bytes, &transfers[i]);
        else
            transport_recv(p->transport, p->peer, TAG_DATA, p->in + (size_t)i * p->bytes,
                           p->bytes, &transfers[i]);
    }
    for (int i = 0; i < WINDOW; i++)
        if (st == STRAIT_OK) st = finish(p, &transfers[i], "the burst with");
        else transport_cancel(p->transport, &transfers[i]);
    if (st != STRAIT_OK) return st;
    return p->leads ? receive_one(p, TAG_ANSWER, 1) : send_one(p, TAG_ANSWER, 1);
}

static strait_status timed(struct pair *p, strait_status (*once)(struct pair *), int times,
                           int repeats, double *seconds)
{
    double measured[repeats];
    strait_status st = once(p); /* warm up */

    for (int r = 0; r < repeats && st == STRAIT_OK; r++) {
        double begin = clock_s();

        for (int i = 0; i < times && st == STRAIT_OK; i++) st = once(p);
        measured[r] = (clock_s() - begin) / times;
    }
    if (st == STRAIT_OK) *seconds = bench_median(measured, repeats);
    return st;
}

static strait_status measure(struct pair *p, int repeats, union bench_cell cells[2])
{
    int times = (int)((4u << 20) / p->bytes);
    double trip = 0, window = 0;
    strait_status st;

    times = times < 1 ? 1 : times > 200 ? 200 : times;
    if ((st = timed(p, round_trip, times, repeats, &trip))) return st;
    if ((st = timed(p, burst, (times + WINDOW - 1) / WINDOW, repeats, &window))) return st;
    cells[0].number = trip / 2 * 1e6;
    cells[1].number = (double)p->bytes * WINDOW / window * 1e-9;
    return STRAIT_OK;
}

/* One size with every peer of rank 0; a pair measures while the others wait. */
static strait_status run_size(struct transport *t, struct pair *p, int repeats,
                              struct bench_table *table)
{
    const struct cluster *c = t->cluster;
    union bench_cell cells[1 + 2 * c->size];
    strait_status st = STRAIT_OK;

    cells[0].number = (double)p->bytes;
    for (int peer = 1; peer < c->size && st == STRAIT_OK; peer++) {
        if ((st = cluster_barrier(c, "the measurement of a pair"))) return st;
        p->leads = c->rank == 0;
        p->peer = p->leads ? peer : 0;
        if (p->leads || c->rank == peer) st = measure(p, repeats, &cells[2 * peer - 1]);
    }
    if (st == STRAIT_OK && table != NULL) bench_table_row(table, cells);
    return st;
}

static strait_status run_sizes(struct transport *t, const struct bench_sizes *sizes, int repeats,
                               struct bench_table *table)
{
    struct pair p = { .transport = t, .out = calloc(1, sizes->last),
                      .in = calloc(WINDOW, sizes->last) };
    strait_status st = STRAIT_OK;

    if (p.out == NULL || p.in == NULL) st = error_memory("messages; try smaller --sizes");
    st = cluster_agree(t->cluster, st, "allocating messages");
    for (p.bytes = sizes->first; p.bytes <= sizes->last && st == STRAIT_OK;
         p.bytes *= sizes->factor)
        st = run_size(t, &p, repeats, table);
    free(p.out);
    free(p.in);
    return st;
}

/* A column for the size and two for each peer, with their names behind them. */
static struct bench_column *make_columns(int ranks)
{
    enum { NAME_BYTES = 24 };
    size_t count = (size_t)(2 * ranks - 1);
    struct bench_column *columns = calloc(count, sizeof *columns + NAME_BYTES);
    char *names = (char *)(columns + count);

    if (columns == NULL) return NULL;
    columns[0] = (struct bench_column){ "size", 10, 0 };
    for (int i = 1; i < (int)count; i++, names += NAME_BYTES) {
        bool rate = i % 2 == 0;

        snprintf(names, NAME_BYTES, "%s_%d", rate ? "gbs" : "lat_us", (i + 1) / 2);
        columns[i] = (struct bench_column){ names, 10, rate ? 3 : 2 };
    }
    return columns;
}

static int with_mpi(const char *transport, const struct bench_sizes *sizes, int repeats,
                    const char *format)
{
    struct cluster *cluster = NULL;
    struct transport *t = NULL;
    struct bench_column *columns = NULL;
    struct bench_table *table = NULL;
    bool written = true, agreed = false;
    strait_status st = cluster_open(&cluster, MPI_COMM_WORLD, timeout_s);

    if (st == STRAIT_OK) st = transport_open(&t, transport_find(transport), cluster);
    if (st == STRAIT_OK && cluster->rank == 0) {
        columns = make_columns(cluster->size);
        if (columns != NULL)
            table = bench_table_open(format, "p2p", columns, 2 * cluster->size - 1);
        if (table == NULL) st = error_memory("a table");
    }
    if (cluster != NULL) st = cluster_agree(cluster, st, "opening the transport");
    agreed = st != STRAIT_OK;
    if (st == STRAIT_OK) cluster->timeout_s = turn_s;
    if (st == STRAIT_OK) st = run_sizes(t, sizes, repeats, table);
    if (table != NULL) written = bench_table_close(table);
    if (st != STRAIT_OK && agreed) report_error(st);
    if (st != STRAIT_OK && !agreed) {
        log_write(LOG_ERROR, "%s", strait_error_message());
        MPI_Abort(MPI_COMM_WORLD, error_exit_code(st)); /* nobody else knows */
    }
    transport_close(t, st != STRAIT_OK);
    cluster_close(cluster);
    free(columns);
    return st != STRAIT_OK ? error_exit_code(st) : written ? 0 : 1;
}

int bench_p2p(int argc, char **argv)
{
    static const char command[] = "bench p2p";
    const char *range = "4:4M:8", *transport = "ucx", *repeat = "7", *format = "text";
    const struct bench_option options[] = {
        { "--sizes", &range, NULL }, { "--transport", &transport, NULL },
        { "--repeat", &repeat, NULL }, { "--format", &format, NULL }, { 0 },
    };
    struct bench_sizes sizes;
    long repeats;
    int level, code;

    if (bench_wants_help(argc, argv)) {
        if (speaks()) print_help();
        return 0;
    }
    if (!bench_parse(command, argc, argv, options, NULL)) return EXIT_USAGE;
    if (!bench_sizes(command, range, &sizes)) return EXIT_USAGE;
    if (transport_find(transport) == NULL)
        return usage_error(command, "unknown transport %s; `strait info` lists them", transport);
    if (!bench_integer(command, "--repeat", repeat, 1, 1000, &repeats)) return EXIT_USAGE;
    if (!bench_format_known(format))
        return usage_error(command, "--format takes text, csv or json, not %s", format);
    if (job_size() < 2) return usage_error(command, "start two ranks or more: mpirun -np 2");
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level) != MPI_SUCCESS) return 1;
    code = with_mpi(transport, &sizes, (int)repeats, format);
    MPI_Finalize();
    return code;
}
