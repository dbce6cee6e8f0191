/* SPDX-License-Identifier: Apache-2.0
 * bench_allreduce.c - `strait bench allreduce`: every codec and schedule and MPI_Allreduce,
 * size by size. Repeat r of all variants comes before repeat r + 1 of any, so that whatever
 * else the machine does falls on all of them alike. */
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "bench_variant.h"

enum { SCHEDULES_MAX = 16 };

static const double start_timeout_s = 60;
static const char command[] = "bench allreduce";

struct arguments {
    const char *codec, *schedule, *range, *transport, *repeat, *warmup, *tensors, *rate, *format;
    const char *gradients;
    bool cpu, no_mpi;
    struct bench_sets sets;
    char nodes[CONFIG_TEXT_BYTES]; /* of comm.nodes */
    struct bench_sizes sizes;
    struct bench_codec_choice choices[BENCH_CODECS_MAX];
    const struct schedule *schedules[SCHEDULES_MAX];
    int choice_count, schedule_count;
    long repeats, warmups;
    double link_bytes_s; /* 0: not told */
};

static const struct bench_column columns[] = {
    { "size", 10, 0 },       { "count", 10, 0 },      { "codec", 12, TEXT_COLUMN },
    { "schedule", 8, TEXT_COLUMN },                   { "time_ms", 11, 3 },
    { "algbw_gbs", 9, 3 },   { "busbw_gbs", 9, 3 },   { "wire_bytes", 11, 0 },
    { "ratio", 7, 2 },       { "wire_percent", 12, 1 }, { "error", 9, EXPONENT_COLUMN },
    { "ok", 3, TEXT_COLUMN },
};

static void print_help(void)
{
    printf("Usage: mpirun -np N strait bench allreduce [OPTIONS]\n\n"
           "Average a gradient over the ranks: every codec with every schedule, and MPI_Allreduce\n"
           "of fp32 (the row mpi), in turn.\n\n"
           "  --codec LIST      codecs, as int8,topk:0.01 (default all)\n"
           "  --schedule LIST   sra, ring, allgather, dense, or all (default sra)\n"
           "  --sizes RANGE     bytes of fp32: 1M, 4K:256M or 4K:256M:2 (default 4K:16M:4)\n"
           "  --tensors T       cut the gradient into T tensors, or as resnet50 (default 1)\n"
           "  --transport T     ucx or mpi (default ucx)\n"
           "  --repeat N        measurements, of which the median counts (default 7)\n"
           "  --warmup N        exchanges before them (default 1)\n"
           "  --link-rate RATE  of each rank's link, as 1gbit: fills wire_percent\n"
           "  --gradients FILE  exchange these fp32 values, from rank * size on, over and over\n"
           "  --no-mpi          leave MPI_Allreduce out\n"
           "  --cpu             processor seconds of each rank at the end\n"
           "  --format F        text, csv or json (default text)\n"
           "  --set KEY=VALUE   any comm.* or fault.* value; comm.dense_below and\n"
           "                    comm.check_every are 0 here\n\n"
           "time_ms is the slowest rank's; algbw_gbs = size / time; busbw_gbs = algbw_gbs *\n"
           "2(N-1)/N; wire_bytes: sent by one rank (the largest) in one exchange; ratio: to an\n"
           "uncompressed exchange; wire_percent: the time that the link needs for them, of the\n"
           "time taken; error: relative to the exact mean, first exchange. ok: the same bits on\n"
           "all ranks and an error within the codec's bound; exit 1 when a row is not.\n");
}

/* ---- arguments ---- */
static bool parse_schedules(struct arguments *a)
{
    char list[128], *rest = NULL;

    if (strcmp(a->schedule, "all") == 0) {
        while (schedule_table[a->schedule_count] != NULL) {
            a->schedules[a->schedule_count] = schedule_table[a->schedule_count];
            a->schedule_count++;
        }
        return true;
    }
    snprintf(list, sizeof list, "%s", a->schedule);
    for (char *word = strtok_r(list, ",", &rest); word != NULL; word = strtok_r(NULL, ",", &rest)) {
        const struct schedule *schedule = schedule_find(word);

        if (schedule == NULL || a->schedule_count == SCHEDULES_MAX) {
            usage_error(command, "unknown schedule %s; `strait info` lists them", word);
            return false;
        }
        a->schedules[a->schedule_count++] = schedule;
    }
    if (a->schedule_count == 0) usage_error(command, "--schedule names no schedule");
    return a->schedule_count > 0;
}

/* "200mbit" to bytes a second, as tc reads it. */
static bool parse_rate(struct arguments *a)
{
    static const struct { const char *unit; double bits; } units[] = {
        { "bit", 1 }, { "kbit", 1e3 }, { "mbit", 1e6 }, { "gbit", 1e9 },
    };
    char *end;
    double value;

    if (a->rate == NULL) return true;
    value = strtod(a->rate, &end);
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcasecmp(end, units[i].unit) == 0) a->link_bytes_s = value * units[i].bits / 8;
    if (isfinite(a->link_bytes_s) && a->link_bytes_s > 0) return true;
    usage_error(command, "--link-rate takes a rate as 200mbit or 1gbit, not %s", a->rate);
    return false;
}

static bool check_sets(struct arguments *a)
{
    static const char *const own[] = { "comm.codec=", "comm.schedule=", "comm.transport=" };
    struct strait_config scratch;

    config_defaults(&scratch);
    for (int i = 0; i < a->sets.count; i++) {
        for (size_t k = 0; k < sizeof own / sizeof own[0]; k++)
            if (strncmp(a->sets.values[i], own[k], strlen(own[k])) == 0) {
                usage_error(command, "instead of --set %s use --%s", a->sets.values[i],
                            k == 0 ? "codec" : k == 1 ? "schedule" : "transport");
                return false;
            }
        if (config_assign(&scratch, a->sets.values[i]) != STRAIT_OK) {
            usage_error(command, "%s", strait_error_message());
            return false;
        }
    }
    snprintf(a->nodes, sizeof a->nodes, "%s", scratch.comm.nodes);
    return true;
}

static bool parse(int argc, char **argv, struct arguments *a)
{
    const struct bench_option options[] = {
        { "--codec", &a->codec, NULL },         { "--schedule", &a->schedule, NULL },
        { "--sizes", &a->range, NULL },         { "--transport", &a->transport, NULL },
        { "--repeat", &a->repeat, NULL },       { "--warmup", &a->warmup, NULL },
        { "--tensors", &a->tensors, NULL },     { "--link-rate", &a->rate, NULL },
        { "--gradients", &a->gradients, NULL }, { "--format", &a->format, NULL },
        { "--cpu", NULL, &a->cpu },             { "--no-mpi", NULL, &a->no_mpi },
        { 0 },
    };

    *a = (struct arguments){ .codec = "all", .schedule = "sra", .range = "4K:16M:4",
                             .transport = "ucx", .repeat = "7", .warmup = "1", .tensors = "1",
                             .format = "text" };
    if (!bench_parse(command, argc, argv, options, &a->sets)) return false;
    if ((a->choice_count = bench_codecs(command, a->codec, a->choices)) == 0) return false;
    if (!parse_schedules(a) || !bench_sizes(command, a->range, &a->sizes)) return false;
    if (transport_find(a->transport) == NULL) {
        usage_error(command, "unknown transport %s; `strait info` lists them", a->transport);
        return false;
    }
    if (!bench_format_known(a->format)) {
        usage_error(command, "--format takes text, csv or json, not %s", a->format);
        return false;
    }
    return bench_integer(command, "--repeat", a->repeat, 1, BENCH_REPEATS_MAX, &a->repeats) &&
           bench_integer(command, "--warmup", a->warmup, 0, 1000, &a->warmups) &&
           bench_cut_known(command, a->tensors) && parse_rate(a) && check_sets(a);
}

/* ---- data ---- */
static strait_status map_gradients(const char *path, struct bench_job *job)
{
    struct stat about;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    void *map = MAP_FAILED;

    if (file < 0 || fstat(file, &about) != 0)
        about.st_size = 0;
    job->given_count = (size_t)about.st_size / sizeof(float);
    if (job->given_count > 0)
        map = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    if (file >= 0) close(file);
    if (map == MAP_FAILED)
        return error_set(STRAIT_ERR_IO, "%s: cannot be read as fp32 values: %m", path);
    job->given = map; /* for the life of the process */
    return STRAIT_OK;
}

static strait_status fill(struct bench_job *job, const char *tensors)
{
    size_t bytes = job->elements * sizeof(float);

    job->source = malloc(bytes);
    job->work = malloc(bytes);
    job->mean = malloc((bench_share(job, job->cluster->rank + 1) -
                        bench_share(job, job->cluster->rank) + 1) * sizeof *job->mean);
    job->bounds = NULL;
    job->tensors = bench_cut(tensors, job->elements, &job->bounds);
    if (job->source == NULL || job->work == NULL || job->mean == NULL || job->tensors == 0)
        return error_memory("the gradient; try smaller --sizes");
    bench_fill(job);
    return STRAIT_OK;
}

/* ---- results ---- */

/* Bytes that one rank sent in the measured exchanges. */
struct sent {
    uint64_t all, between_nodes;
};

static struct sent sent_by(const struct bench_variant *v)
{
    const uint64_t *begin = v->begin.wire_bytes, *end = v->end.wire_bytes;
    uint64_t between = end[STRAIT_BETWEEN_NODES] - begin[STRAIT_BETWEEN_NODES];

    return (struct sent){ between + end[STRAIT_WITHIN_NODE] - begin[STRAIT_WITHIN_NODE],
                          between };
}

/* On rank 0: a row, and whether it is as it should be. */
static bool print_row(struct bench_table *table, const struct arguments *a,
                      const struct bench_job *job, struct bench_variant *v,
                      struct sent most)
{
    double n = job->cluster->size, bytes = (double)job->elements * sizeof(float);
    double sent = (double)most.all / job->repeats;
    double linked = job->cluster->nodes > 1 ? (double)most.between_nodes / job->repeats : sent;
    double time = bench_median(v->times, job->repeats);
    bool ok = v->identical && v->error <= bench_variant_bound(v, job);

    bench_table_row(table, (union bench_cell[]){
        { .number = bytes }, { .number = (double)job->elements },
        { .text = v->choice != NULL ? v->choice->label : "mpi" },
        { .text = v->schedule != NULL ? v->schedule->name : "-" },
        { .number = time * 1e3 }, { .number = bytes / time * 1e-9 },
        { .number = bytes / time * 1e-9 * 2 * (n - 1) / n },
        { .number = v->choice != NULL ? sent : NAN },
        { .number = sent > 0 ? 2 * (n - 1) / n * bytes / sent : NAN },
        { .number = sent > 0 && a->link_bytes_s > 0 ? 100 * linked / a->link_bytes_s / time : NAN },
        { .number = v->error }, { .text = ok ? "yes" : "no" } });
    return ok;
}

static strait_status report(struct bench_table *table, const struct arguments *a,
                            const struct bench_job *job, struct bench_variant *variants,
                            int count, bool *ok)
{
    for (int i = 0; i < count; i++) {
        struct sent mine = sent_by(&variants[i]), most = { 0, 0 };

        if (MPI_Reduce(&mine, &most, 2, MPI_UINT64_T, MPI_MAX, 0, job->cluster->comm))
            return error_set(STRAIT_ERR_MPI, "MPI failed in collecting byte counts");
        if (table != NULL && !print_row(table, a, job, &variants[i], most)) *ok = false;
    }
    return STRAIT_OK;
}

/* Memory and, with --cpu, processor time: every rank's to rank 0. */
static strait_status report_usage(struct bench_table *table, const struct arguments *a,
                                  const struct cluster *c)
{
    struct rusage usage;
    double mine[3], all[3 * c->size], peak = 0;
    strait_status st;

    getrusage(RUSAGE_SELF, &usage);
    mine[0] = (double)usage.ru_maxrss / 1024;
    mine[1] = (double)usage.ru_utime.tv_sec + (double)usage.ru_utime.tv_usec * 1e-6;
    mine[2] = (double)usage.ru_stime.tv_sec + (double)usage.ru_stime.tv_usec * 1e-6;
    if ((st = cluster_allgather(c, mine, sizeof mine, all, "collecting the use of memory")))
        return st;
    if (table == NULL) return STRAIT_OK;
    bench_table_note(table, "ranks", c->size, 0);
    for (int r = 0; r < c->size; r++) peak = fmax(peak, all[3 * r]);
    bench_table_note(table, "peak_memory_mib", peak, 1);
    for (int r = 0; r < c->size && a->cpu; r++) {
        char name[48];

        snprintf(name, sizeof name, "cpu_user_s_rank%d", r);
        bench_table_note(table, name, all[3 * r + 1], 2);
        snprintf(name, sizeof name, "cpu_system_s_rank%d", r);
        bench_table_note(table, name, all[3 * r + 2], 2);
    }
    return STRAIT_OK;
}

/* ---- running ---- */

/* `agreed` tells whether all ranks know of the status. */
static strait_status run_variants(struct bench_variant *variants, int count,
                                  const struct bench_job *job, bool *agreed)
{
    strait_status st = STRAIT_OK;

    for (int i = 0; i < count && st == STRAIT_OK; i++)
        st = bench_variant_open(&variants[i], job);
    if (st != STRAIT_OK) return st;
    *agreed = false;
    for (int r = 0; r < job->warmup + job->repeats && st == STRAIT_OK; r++)
        for (int i = 0; i < count && st == STRAIT_OK; i++)
            st = bench_variant_run(&variants[i], job, r);
    return st;
}

static strait_status run_size(const struct arguments *a, struct bench_job *job,
                              struct bench_table *table, bool *ok, bool *agreed)
{
    int own = a->choice_count * a->schedule_count, count = own + !a->no_mpi;
    struct bench_variant *variants = calloc((size_t)count, sizeof *variants);
    strait_status st = variants == NULL ? error_memory("variants") : fill(job, a->tensors);

    *agreed = true;
    st = cluster_agree(job->cluster, st, "making gradients");
    for (int i = 0; i < own && variants != NULL; i++) {
        variants[i].choice = &a->choices[i / a->schedule_count];
        variants[i].schedule = a->schedules[i % a->schedule_count];
    }
    if (st == STRAIT_OK) st = run_variants(variants, count, job, agreed);
    if (st == STRAIT_OK) st = report(table, a, job, variants, count, ok);
    if (st != STRAIT_OK && !*agreed) return st; /* the job is aborted: exchanges may go on */
    /* in the same order everywhere: closing is collective */
    for (int i = 0; i < count && variants != NULL; i++) {
        strait_status closed = strait_close(variants[i].ctx);

        if (st == STRAIT_OK) st = closed;
    }
    free(variants);
    free(job->bounds);
    free(job->mean);
    free(job->source);
    free(job->work);
    return st;
}

static strait_status run(const struct arguments *a, struct cluster **cluster, bool *ok,
                         bool *agreed)
{
    struct bench_job job = { .transport = a->transport, .sets = &a->sets,
                             .repeats = (int)a->repeats, .warmup = (int)a->warmups };
    struct bench_table *table = NULL;
    strait_status st;

    *agreed = false;
    if ((st = cluster_open(cluster, MPI_COMM_WORLD, start_timeout_s))) return st;
    *agreed = true;
    if ((st = cluster_rehearse(*cluster, a->nodes))) return st;
    job.cluster = *cluster;
    if (a->gradients != NULL) st = map_gradients(a->gradients, &job);
    if ((st = cluster_agree(*cluster, st, "reading gradients"))) return st;
    if (job.cluster->rank == 0) {
        table = bench_table_open(a->format, "allreduce", columns,
                                 sizeof columns / sizeof columns[0]);
        if (table == NULL) st = error_memory("a table");
    }
    if ((st = cluster_agree(*cluster, st, "making a table"))) return st;
    for (size_t size = a->sizes.first; size <= a->sizes.last && st == STRAIT_OK;
         size *= a->sizes.factor) {
        job.elements = size / sizeof(float);
        st = run_size(a, &job, table, ok, agreed);
    }
    if (st == STRAIT_OK) st = report_usage(table, a, *cluster);
    if (table != NULL && !bench_table_close(table)) *ok = false;
    return st;
}

int bench_allreduce(int argc, char **argv)
{
    struct arguments a;
    struct cluster *cluster = NULL;
    bool ok = true, agreed = true;
    int level, code = 0;
    strait_status st;

    if (bench_wants_help(argc, argv)) {
        if (speaks()) print_help();
        return 0;
    }
    if (!parse(argc, argv, &a)) return EXIT_USAGE;
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level) != MPI_SUCCESS) return 1;
    st = run(&a, &cluster, &ok, &agreed);
    if (st != STRAIT_OK) {
        code = error_exit_code(st);
        if (!agreed) log_write(LOG_ERROR, "%s", strait_error_message());
        else if (speaks()) fprintf(stderr, "strait: %s\n", strait_error_message());
        if (!agreed) MPI_Abort(MPI_COMM_WORLD, code);
    }
    if (!ok) code = 1;
    /* what rank 0 found out about rows is the whole job's exit code */
    if (st == STRAIT_OK) MPI_Bcast(&code, 1, MPI_INT, 0, cluster->comm);
    cluster_close(cluster);
    MPI_Finalize();
    return code;
}
