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

enum { SCHEDULES_MAX = 16, MIB = 1 << 20 };

static const double start_timeout_s = 60;
static const char command[] = "bench allreduce";

struct arguments {
    const char *codec, *schedule, *range, *transport, *repeat, *warmup, *tensors, *rate, *format;
    const char *gradients, *values, *compute;
    bool cpu, no_mpi, busy;
    struct bench_sets sets;
    char nodes[CONFIG_TEXT_BYTES]; /* of comm.nodes */
    struct bench_sizes sizes;
    struct bench_codec_choice choices[BENCH_CODECS_MAX];
    const struct schedule *schedules[SCHEDULES_MAX];
    int choice_count, schedule_count;
    long repeats, warmups, tensor_count;
    double link_bytes_s; /* 0: not known */
    double compute_s;    /* of --compute; below 0: as the exchange */
};

static const struct bench_column columns[] = {
    { "size", 10, 0 },       { "count", 10, 0 },      { "codec", 12, TEXT_COLUMN },
    { "schedule", 8, TEXT_COLUMN },                   { "time_ms", 11, 3 },
    { "algbw_gbs", 9, 3 },   { "busbw_gbs", 9, 3 },   { "wire_bytes", 11, 0 },
    { "ratio", 7, 2 },       { "wire_percent", 12, 1 }, { "error", 9, EXPONENT_COLUMN },
    { "ok", 3, TEXT_COLUMN },       { "node_bytes", 11, 0 },  { "cpu_ms", 9, 2 },
    { "residual_mib", 12, 2 },      { "peak_mib", 9, 2 },
    /* with --compute */
    { "compute_ms", 11, 3 },        { "step_ms", 11, 3 },     { "step_cpu_ms", 11, 2 },
    { "step_ratio", 10, 3 },
};
enum { COLUMNS = sizeof columns / sizeof columns[0], COMPUTE_COLUMNS = 4 };

static void print_help(void)
{
    printf("Usage: mpirun -np N strait bench allreduce [OPTIONS]\n\n"
           "Average a gradient over the ranks: every codec with every schedule, and MPI_Allreduce\n"
           "of fp32 (the row mpi), in turn.\n\n"
           "  --codec LIST      codecs, as int8,topk:0.01 (default all)\n"
           "  --schedule LIST   `strait info` lists them; or all (default sra)\n"
           "  --sizes RANGE     bytes of fp32: 1M, 4K:256M or 4K:256M:2 (default 4K:16M:4)\n"
           "  --tensors T       cut the gradient into T equal matrices (default 1)\n"
           "  --gradients G     instead of both, the tensors of resnet50, bert-large, gpt2, or\n"
           "                    of a file: a tensor a line in forward order, as conv1 64 3 7 7\n"
           "  --values FILE     exchange these fp32 values, from rank * size on, over and over\n"
           "  --compute T       with each exchange another, overlapped by a backward pass of T\n"
           "                    ms, or of the same length (same): the step columns\n"
           "  --busy            the pass takes T of processor time; otherwise it sleeps\n"
           "  --transport T     ucx or mpi (default ucx)\n"
           "  --repeat N        measurements, of which the median counts (default 7)\n"
           "  --warmup N        exchanges before them (default 1)\n"
           "  --link-rate RATE  of each node's link, as 1gbit; otherwise it is measured first\n"
           "  --no-mpi          leave MPI_Allreduce out\n"
           "  --cpu             processor seconds of each rank at the end\n"
           "  --format F        text, csv or json (default text)\n"
           "  --set KEY=VALUE   any comm.* or fault.* value; comm.dense_below and\n"
           "                    comm.check_every are 0 here\n\n");
    printf("time_ms is the slowest rank's; algbw_gbs = size / time; busbw_gbs = algbw_gbs *\n"
           "2(N-1)/N; wire_bytes: sent by one rank (the largest) in one exchange; ratio: to an\n"
           "uncompressed exchange; node_bytes: sent by one node (the largest) to others;\n"
           "wire_percent: the time that the node's link needs for them, of the time taken;\n"
           "error: relative to the exact mean, first exchange. ok: the same bits on all ranks and\n"
           "an error within the codec's bound; exit 1 when a row is not. cpu_ms: processor time\n"
           "of one rank (the largest) in one exchange. residual_mib: held for error feedback;\n"
           "peak_mib: by how much the exchange made a rank (the largest) grow, residuals\n"
           "included. step_ms: pass and exchange; step_ratio: to the longer of the two.\n");
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

/* "12.5" milliseconds, or "same". */
static bool parse_compute(struct arguments *a)
{
    char *end = NULL;

    if (a->compute == NULL) return true;
    a->compute_s = -1;
    if (strcmp(a->compute, "same") == 0) return true;
    a->compute_s = strtod(a->compute, &end) / 1e3;
    if (end != a->compute && *end == '\0' && a->compute_s >= 0 && a->compute_s <= 3600)
        return true;
    usage_error(command, "--compute takes milliseconds up to an hour, or same, not %s",
                a->compute);
    return false;
}

/* --gradients says what --sizes and --tensors would. */
static bool parse_tensors(struct arguments *a)
{
    if (a->gradients != NULL && (a->range != NULL || a->tensors != NULL)) {
        usage_error(command, "--gradients has its own sizes: leave %s out",
                    a->range != NULL ? "--sizes" : "--tensors");
        return false;
    }
    return bench_sizes(command, a->range != NULL ? a->range : "4K:16M:4", &a->sizes) &&
           bench_integer(command, "--tensors", a->tensors != NULL ? a->tensors : "1", 1,
                         BENCH_TENSORS_MAX, &a->tensor_count);
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
        { "--values", &a->values, NULL },       { "--compute", &a->compute, NULL },
        { "--cpu", NULL, &a->cpu },             { "--no-mpi", NULL, &a->no_mpi },
        { "--busy", NULL, &a->busy },           { 0 },
    };

    *a = (struct arguments){ .codec = "all", .schedule = "sra", .transport = "ucx",
                             .repeat = "7", .warmup = "1", .format = "text" };
    if (!bench_parse(command, argc, argv, options, &a->sets)) return false;
    if ((a->choice_count = bench_codecs(command, a->codec, a->choices)) == 0) return false;
    if (!parse_schedules(a) || !parse_tensors(a) || !parse_compute(a)) return false;
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
           parse_rate(a) && check_sets(a);
}

/* ---- data ---- */
static strait_status map_values(const char *path, struct bench_job *job)
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

/* The tensors of this size, and room for them; size 0: those of --gradients. */
static strait_status prepare(struct bench_job *job, const struct arguments *a, size_t size)
{
    strait_status st = size == 0 ? bench_tensors_load(a->gradients, &job->tensors)
                                 : bench_tensors_even(size / sizeof(float), (int)a->tensor_count,
                                                      &job->tensors);

    job->elements = job->tensors.elements;
    job->work = st == STRAIT_OK ? malloc(job->elements * sizeof(float)) : NULL;
    if (st != STRAIT_OK || job->work != NULL) return st;
    return error_memory("the gradient; try smaller --sizes");
}

/* ---- results ---- */

/* What one rank has to tell of a variant. */
struct account {
    double sent, between_nodes; /* bytes, in one exchange */
    double residual, peak;      /* bytes */
};

static struct account account_of(const struct bench_variant *v)
{
    const uint64_t *begin = v->begin.wire_bytes, *end = v->end.wire_bytes;
    uint64_t between = end[STRAIT_BETWEEN_NODES] - begin[STRAIT_BETWEEN_NODES];

    return (struct account){
        .sent = (double)(between + end[STRAIT_WITHIN_NODE] - begin[STRAIT_WITHIN_NODE]),
        .between_nodes = (double)between, .residual = (double)v->end.residual_bytes,
        .peak = v->memory.peak,
    };
}

/* The largest of each; of what leaves a node, the node's with most. */
static struct account largest(const struct cluster *c, const struct account *all)
{
    struct account most = { 0, 0, 0, 0 };
    double node[c->nodes];

    for (int i = 0; i < c->nodes; i++) node[i] = 0;
    for (int r = 0; r < c->size; r++) {
        node[c->places[r].node] += all[r].between_nodes;
        most.sent = fmax(most.sent, all[r].sent);
        most.residual = fmax(most.residual, all[r].residual);
        if (!(all[r].peak <= most.peak)) most.peak = all[r].peak; /* NaN counts */
    }
    for (int i = 0; i < c->nodes; i++) most.between_nodes = fmax(most.between_nodes, node[i]);
    return most;
}

/* On rank 0: a row, and whether it is as it should be. */
static bool print_row(struct bench_table *table, const struct arguments *a,
                      const struct bench_job *job, struct bench_variant *v,
                      const struct account *most)
{
    double n = job->cluster->size, bytes = (double)job->elements * sizeof(float);
    double dense = 2 * (n - 1) / n * bytes, time = bench_median(v->alone.wall_s, job->repeats);
    double compute = NAN, step = NAN, step_cpu = NAN;
    bool ok = v->identical && v->error <= bench_variant_bound(v, job), own = v->choice != NULL;
    bool linked = most->between_nodes > 0 && a->link_bytes_s > 0;

    if (job->compute != COMPUTE_NONE) {
        compute = bench_median(v->compute_s, job->repeats);
        step = bench_median(v->step.wall_s, job->repeats);
        step_cpu = bench_median(v->step.cpu_s, job->repeats);
    }
    bench_table_row(table, (union bench_cell[COLUMNS]){
        { .number = bytes }, { .number = (double)job->elements },
        { .text = own ? v->choice->label : "mpi" },
        { .text = v->schedule != NULL ? v->schedule->name : "-" },
        { .number = time * 1e3 }, { .number = bytes / time * 1e-9 },
        { .number = dense / time * 1e-9 }, { .number = own ? most->sent : NAN },
        { .number = most->sent > 0 ? dense / most->sent : NAN },
        { .number = linked ? 100 * most->between_nodes / a->link_bytes_s / time : NAN },
        { .number = v->error }, { .text = ok ? "yes" : "no" },
        { .number = own ? most->between_nodes : NAN },
        { .number = bench_median(v->alone.cpu_s, job->repeats) * 1e3 },
        { .number = own ? most->residual / MIB : NAN }, { .number = most->peak / MIB },
        { .number = compute * 1e3 }, { .number = step * 1e3 }, { .number = step_cpu * 1e3 },
        { .number = step / fmax(compute, time) } });
    return ok;
}

/* `peaks` keeps, by rank, the most that any variant made it grow. */
static strait_status report(struct bench_table *table, const struct arguments *a,
                            const struct bench_job *job, struct bench_variant *variants,
                            int count, double *peaks, bool *ok)
{
    const struct cluster *c = job->cluster;
    struct account all[c->size];
    strait_status st;

    for (int i = 0; i < count; i++) {
        struct account mine = account_of(&variants[i]), most;

        if ((st = cluster_allgather(c, &mine, sizeof mine, all, "collecting what was used")))
            return st;
        most = largest(c, all);
        for (int r = 0; r < c->size; r++)
            if (!(all[r].peak <= peaks[r])) peaks[r] = all[r].peak;
        if (table != NULL && !print_row(table, a, job, &variants[i], &most)) *ok = false;
    }
    return STRAIT_OK;
}

static void note_rank(struct bench_table *table, const char *what, int rank, double value,
                      int decimals)
{
    char name[48];

    snprintf(name, sizeof name, "%s_rank%d", what, rank);
    bench_table_note(table, name, value, decimals);
}

/* Memory and, with --cpu, processor time: every rank's to rank 0. peak_mib_rankR is what the
 * greediest variant took, peak_memory_mib the most that a process has ever held. */
static strait_status report_usage(struct bench_table *table, const struct arguments *a,
                                  const struct cluster *c, const double *peaks)
{
    struct rusage usage;
    double mine[3], all[3 * c->size], process = 0;
    strait_status st;

    getrusage(RUSAGE_SELF, &usage);
    mine[0] = (double)usage.ru_maxrss / 1024;
    mine[1] = (double)usage.ru_utime.tv_sec + (double)usage.ru_utime.tv_usec * 1e-6;
    mine[2] = (double)usage.ru_stime.tv_sec + (double)usage.ru_stime.tv_usec * 1e-6;
    if ((st = cluster_allgather(c, mine, sizeof mine, all, "collecting the use of memory")))
        return st;
    if (table == NULL) return STRAIT_OK;
    for (int r = 0; r < c->size; r++) process = fmax(process, all[3 * r]);
    bench_table_note(table, "peak_memory_mib", process, 1);
    for (int r = 0; r < c->size; r++) note_rank(table, "peak_mib", r, peaks[r] / MIB, 2);
    for (int r = 0; r < c->size && a->cpu; r++) {
        note_rank(table, "cpu_user_s", r, all[3 * r + 1], 2);
        note_rank(table, "cpu_system_s", r, all[3 * r + 2], 2);
    }
    return STRAIT_OK;
}

/* Before the first row: what it all ran on. */
static void report_settings(struct bench_table *table, const struct arguments *a,
                            const struct cluster *c)
{
    bench_table_note(table, "ranks", c->size, 0);
    bench_table_note(table, "nodes", c->nodes, 0);
    bench_table_text(table, "transport", a->transport);
    bench_table_text(table, "gradients", a->gradients != NULL ? a->gradients : "even");
    bench_table_text(table, "link_rate", a->link_bytes_s == 0 ? "unknown: one node"
                                         : a->rate != NULL    ? "told" : "measured");
    if (a->link_bytes_s > 0) bench_table_note(table, "link_mbit_s", a->link_bytes_s * 8e-6, 1);
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

static strait_status run_size(const struct arguments *a, struct bench_job *job, size_t size,
                              struct bench_table *table, double *peaks, bool *ok, bool *agreed)
{
    int own = a->choice_count * a->schedule_count, count = own + !a->no_mpi;
    struct bench_variant *variants = calloc((size_t)count, sizeof *variants);
    strait_status st = variants == NULL ? error_memory("variants") : prepare(job, a, size);

    *agreed = true;
    st = cluster_agree(job->cluster, st, "making gradients");
    for (int i = 0; i < own && variants != NULL; i++) {
        variants[i].choice = &a->choices[i / a->schedule_count];
        variants[i].schedule = a->schedules[i % a->schedule_count];
    }
    if (st == STRAIT_OK) st = run_variants(variants, count, job, agreed);
    if (st == STRAIT_OK) st = report(table, a, job, variants, count, peaks, ok);
    if (st != STRAIT_OK && !*agreed) return st; /* the job is aborted: exchanges may go on */
    /* in the same order everywhere: closing is collective */
    for (int i = 0; i < count && variants != NULL; i++) {
        strait_status closed = strait_close(variants[i].ctx);

        if (st == STRAIT_OK) st = closed;
    }
    free(variants);
    bench_tensors_free(&job->tensors);
    free(job->work);
    return st;
}

static strait_status run_sizes(const struct arguments *a, struct bench_job *job,
                               struct bench_table *table, bool *ok, bool *agreed)
{
    const struct cluster *c = job->cluster;
    double peaks[c->size];
    strait_status st = STRAIT_OK;

    for (int r = 0; r < c->size; r++) peaks[r] = 0;
    if (a->gradients != NULL) st = run_size(a, job, 0, table, peaks, ok, agreed);
    else for (size_t size = a->sizes.first; size <= a->sizes.last && st == STRAIT_OK;
              size *= a->sizes.factor)
        st = run_size(a, job, size, table, peaks, ok, agreed);
    return st == STRAIT_OK ? report_usage(table, a, c, peaks) : st;
}

static strait_status run(struct arguments *a, struct cluster **cluster, bool *ok, bool *agreed)
{
    struct bench_job job = {
        .transport = a->transport, .sets = &a->sets, .repeats = (int)a->repeats,
        .warmup = (int)a->warmups, .busy = a->busy, .compute_s = fmax(a->compute_s, 0),
        .compute = a->compute == NULL ? COMPUTE_NONE : a->compute_s < 0 ? COMPUTE_SAME
                                                                        : COMPUTE_FIXED,
    };
    struct bench_table *table = NULL;
    strait_status st;

    *agreed = false;
    if ((st = cluster_open(cluster, MPI_COMM_WORLD, start_timeout_s))) return st;
    *agreed = true;
    if ((st = cluster_rehearse(*cluster, a->nodes))) return st;
    job.cluster = *cluster;
    if (a->values != NULL) st = map_values(a->values, &job);
    if ((st = cluster_agree(*cluster, st, "reading gradients"))) return st;
    if (a->link_bytes_s == 0 && job.cluster->nodes > 1)
        st = bench_link_rate(job.cluster, a->transport, &a->link_bytes_s);
    if (st != STRAIT_OK) return st;
    if (job.cluster->rank == 0) {
        table = bench_table_open(a->format, "allreduce", columns,
                                 COLUMNS - (a->compute == NULL ? COMPUTE_COLUMNS : 0));
        if (table == NULL) st = error_memory("a table");
    }
    if ((st = cluster_agree(*cluster, st, "making a table"))) return st;
    if (table != NULL) report_settings(table, a, *cluster);
    st = run_sizes(a, &job, table, ok, agreed);
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
