/* SPDX-License-Identifier: Apache-2.0
 * report.c - see report.h. */
#include "train/report.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

static const double redraw_s = 0.2;

/* What this rank's output ends up in, when it can be told. Open MPI gives every rank a
 * pseudo-terminal, whatever mpirun's own output is; what counts is where mpirun writes. */
static void output_path(char *path, size_t size)
{
    if (getenv("OMPI_COMM_WORLD_RANK") == NULL) snprintf(path, size, "/proc/self/fd/1");
    else snprintf(path, size, "/proc/%d/fd/1", (int)getppid());
}

static bool writes_to_terminal(void)
{
    char link[64], target[256] = "";

    output_path(link, sizeof link);
    if (readlink(link, target, sizeof target - 1) < 0) return false;
    return strncmp(target, "/dev/pts/", 9) == 0 || strncmp(target, "/dev/tty", 8) == 0;
}

/* Columns of that terminal now: it may have been resized. */
static int terminal_width(void)
{
    struct winsize size = { 0 };
    char path[64];
    int fd;

    output_path(path, sizeof path);
    fd = open(path, O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0) {
        if (ioctl(fd, TIOCGWINSZ, &size) != 0) size.ws_col = 0;
        close(fd);
    }
    return size.ws_col > 0 ? size.ws_col : 80;
}

strait_status report_open(struct report *r, const struct strait_config *config,
                          const struct cluster *cluster, size_t total_steps)
{
    const char *progress = config->report.progress;

    *r = (struct report){ .config = config, .cluster = cluster, .total_steps = total_steps,
                          .begun_at = clock_s() };
    if (strcmp(progress, "off") == 0) r->progress = PROGRESS_OFF;
    else if (strcmp(progress, "line") == 0) r->progress = PROGRESS_LINE;
    else if (strcmp(progress, "auto") == 0 && writes_to_terminal()) r->progress = PROGRESS_LINE;
    else r->progress = PROGRESS_PLAIN;
    return rundir_open(&r->rundir, config);
}

strait_status report_close(struct report *r)
{
    if (r->line_open) printf("\n");
    r->line_open = false;
    fflush(stdout);
    return rundir_close(&r->rundir);
}

void report_header(const struct report *r, const strait_context *ctx, size_t train, size_t test,
                   size_t parameters)
{
    const struct strait_config *c = r->config;
    int compressed = 0;

    for (int b = 0; b < strait_bucket_count(ctx); b++) {
        strait_bucket_info info;

        if (strait_bucket(ctx, b, &info) == STRAIT_OK)
            compressed += strcmp(info.codec, "fp32") != 0;
    }
    printf("strait %s: %d rank%s on %d node%s, device host\n", strait_version(), r->cluster->size,
           r->cluster->size > 1 ? "s" : "", r->cluster->nodes, r->cluster->nodes > 1 ? "s" : "");
    printf("  within a node: %s; between nodes: %s\n",
           strait_transport_path(ctx, STRAIT_WITHIN_NODE),
           strait_transport_path(ctx, STRAIT_BETWEEN_NODES));
    printf("  codec %s, schedule %s: %zu parameters in %d bucket%s, %d of them compressed%s\n",
           c->comm.codec, c->comm.schedule, parameters, strait_bucket_count(ctx),
           strait_bucket_count(ctx) > 1 ? "s" : "", compressed,
           strcmp(c->comm.schedule, "dense") == 0 ? " (dense: but sums cross as fp32)" : "");
    printf("  %zu samples to train on, %zu held out; %lld epochs of %zu steps\n", train, test,
           (long long)c->train.epochs, r->total_steps / (size_t)c->train.epochs);
    printf("  run folder: %s\n", r->rundir.path);
    fflush(stdout);
}

static void write_ratio(char *to, size_t size, double ratio)
{
    if (ratio > 0) snprintf(to, size, "%.2fx", ratio);
    else snprintf(to, size, "-");
}

/* The facts that live and plain lines share. */
static void write_line(const struct report *r, const struct moment *at, double loss, double rate,
                       const struct record *own, struct text *out)
{
    char ratio[32], loss_text[32];
    double gone = clock_s() - r->begun_at;
    double left = gone / (double)at->step * (double)(r->total_steps - at->step);

    write_ratio(ratio, sizeof ratio, record_ratio(own));
    if (isnan(loss)) snprintf(loss_text, sizeof loss_text, "nan"); /* printf may say -nan */
    else snprintf(loss_text, sizeof loss_text, "%.4f", loss);
    text_add(out, "epoch %lld/%lld  step %zu/%zu  loss %s  %.0f samples/s  exposed %.2f ms/step  "
                  "ratio %s  %.0f s left",
             (long long)at->epoch, (long long)r->config->train.epochs, at->step, r->total_steps,
             loss_text, rate, record_ms(own, own->exposed_s), ratio, ceil(left));
}

void report_tick(struct report *r, const struct moment *at, double loss, const struct record *own)
{
    struct text line = { 0 };

    if (r->progress != PROGRESS_LINE || clock_s() - r->drawn_at < redraw_s) return;
    write_line(r, at, loss, record_rate(own) * r->cluster->size, own, &line);
    /* a line that wrapped could not be erased; the last column would wrap too */
    printf("\r\033[K%.*s", terminal_width() - 1, text_string(&line));
    fflush(stdout);
    r->drawn_at = clock_s();
    r->line_open = true;
    text_free(&line);
}

static struct record sum_up(const struct record *records, int ranks)
{
    struct record all = records[0];

    for (int i = 1; i < ranks; i++) {
        all.samples += records[i].samples;
        all.loss_sum += records[i].loss_sum;
        all.held_out += records[i].held_out;
        all.held_out_correct += records[i].held_out_correct;
        all.exposed_s += records[i].exposed_s;
        all.dense_bytes += records[i].dense_bytes;
        for (int c = 0; c < STRAIT_PEER_CLASSES; c++)
            all.wire_bytes[c] += records[i].wire_bytes[c];
    }
    all.exposed_s /= ranks;
    return all;
}

/* NaN when there was nothing to divide. */
static double share(double part, uint64_t whole)
{
    return whole > 0 ? part / (double)whole : NAN;
}

static void add_number(cJSON *json, const char *name, double value)
{
    if (isfinite(value)) cJSON_AddNumberToObject(json, name, value);
    else cJSON_AddNullToObject(json, name);
}

static strait_status write_record(struct report *r, const char *kind, const struct moment *at,
                                  int rank, const struct record *record, double accuracy)
{
    cJSON *json = cJSON_CreateObject();

    if (json == NULL) return error_memory("a JSON record");
    cJSON_AddNumberToObject(json, "schema", 1);
    cJSON_AddStringToObject(json, "kind", kind);
    cJSON_AddNumberToObject(json, "time", (double)time(NULL));
    cJSON_AddNumberToObject(json, "rank", rank);
    cJSON_AddNumberToObject(json, "node", r->cluster->places[rank].node);
    cJSON_AddNumberToObject(json, "local_rank", r->cluster->places[rank].local_rank);
    cJSON_AddStringToObject(json, "host", cluster_host(r->cluster, rank));
    cJSON_AddStringToObject(json, "device", "host");
    cJSON_AddNumberToObject(json, "epoch", (double)at->epoch);
    cJSON_AddNumberToObject(json, "step", (double)at->step);
    cJSON_AddNumberToObject(json, "steps", (double)record->steps);
    cJSON_AddNumberToObject(json, "skipped_steps", (double)record->skipped);
    cJSON_AddNumberToObject(json, "samples", (double)record->samples);
    add_number(json, "loss", share(record->loss_sum, record->samples));
    add_number(json, "held_out_accuracy", accuracy);
    add_number(json, "samples_per_s", record_rate(record));
    add_number(json, "step_ms_median", 1e3 * record->step_median_s);
    add_number(json, "step_ms_p95", 1e3 * record->step_p95_s);
    add_number(json, "compute_ms", record_ms(record, record->step_s - record->exposed_s));
    add_number(json, "encode_decode_ms", record_ms(record, record->encode_decode_s));
    add_number(json, "exposed_ms", record_ms(record, record->exposed_s));
    add_number(json, "raw_bytes", (double)record->raw_bytes);
    add_number(json, "wire_bytes_within_node", (double)record->wire_bytes[STRAIT_WITHIN_NODE]);
    add_number(json, "wire_bytes_between_nodes", (double)record->wire_bytes[STRAIT_BETWEEN_NODES]);
    add_number(json, "compression_ratio", record_ratio(record) > 0 ? record_ratio(record) : NAN);
    return jsonl_write(r->rundir.metrics, json);
}

strait_status report_interval(struct report *r, const struct moment *at,
                              const struct record *records)
{
    struct record all = sum_up(records, r->cluster->size);
    double accuracy = share((double)all.held_out_correct, all.held_out), rate = 0;
    struct text line = { 0 };
    strait_status st = STRAIT_OK;

    for (int rank = 0; rank < r->cluster->size; rank++) rate += record_rate(&records[rank]);
    write_line(r, at, share(all.loss_sum, all.samples), rate, &all, &line);
    if (at->epoch_end && isfinite(accuracy)) text_add(&line, "  held-out %.2f %%", 100 * accuracy);
    if (all.skipped > 0) text_add(&line, "  skipped %llu", (unsigned long long)all.skipped);
    if (r->progress != PROGRESS_OFF) {
        printf("%s%s\n", r->line_open ? "\r\033[K" : "", text_string(&line));
        fflush(stdout);
        r->line_open = false;
    }
    for (int rank = 0; rank < r->cluster->size && st == STRAIT_OK; rank++)
        st = write_record(r, "interval", at, rank, &records[rank], accuracy);
    text_free(&line);
    return st;
}

static void print_table(const struct report *r, const struct record *records)
{
    int host = 4;

    for (int rank = 0; rank < r->cluster->size; rank++) {
        int length = (int)strlen(cluster_host(r->cluster, rank));

        host = length > host ? length : host;
    }
    printf("\n%4s  %-*s  %-6s  %9s  %7s  %7s  %7s  %7s  %7s  %9s  %9s  %6s\n", "rank", host, "host",
           "device", "samples/s", "step", "step", "compute", "enc+dec", "exposed", "within",
           "between", "ratio");
    printf("%4s  %-*s  %-6s  %9s  %7s  %7s  %7s  %7s  %7s  %9s  %9s  %6s\n", "", host, "", "", "",
           "med ms", "p95 ms", "ms/step", "ms/step", "ms/step", "MB sent", "MB sent", "");
    for (int rank = 0; rank < r->cluster->size; rank++) {
        const struct record *record = &records[rank];
        char ratio[32];

        write_ratio(ratio, sizeof ratio, record_ratio(record));
        printf("%4d  %-*s  %-6s  %9.0f  %7.2f  %7.2f  %7.2f  %7.2f  %7.2f  %9.2f  %9.2f  %6s\n",
               rank, host, cluster_host(r->cluster, rank), "host", record_rate(record),
               1e3 * record->step_median_s, 1e3 * record->step_p95_s,
               record_ms(record, record->step_s - record->exposed_s),
               record_ms(record, record->encode_decode_s), record_ms(record, record->exposed_s),
               1e-6 * (double)record->wire_bytes[STRAIT_WITHIN_NODE],
               1e-6 * (double)record->wire_bytes[STRAIT_BETWEEN_NODES], ratio);
    }
}

strait_status report_summary(struct report *r, const struct moment *at,
                             const struct record *records, double accuracy, bool identical,
                             uint64_t hash)
{
    struct text slowest = { 0 };
    strait_status st = STRAIT_OK;

    print_table(r, records);
    verdict_slowest(records, r->cluster, &slowest);
    printf("\n%s", text_string(&slowest));
    if (records[0].skipped > 0)
        printf("skipped steps: %llu of %llu (a gradient was not finite)\n",
               (unsigned long long)records[0].skipped, (unsigned long long)records[0].steps);
    printf("replicas: %s (parameters %016llx)\n", identical ? "identical" : "DIFFERENT",
           (unsigned long long)hash);
    if (isfinite(accuracy)) printf("held-out accuracy: %.2f %%\n", 100 * accuracy);
    printf("metrics: %s/metrics.jsonl\n", r->rundir.path);
    for (int rank = 0; rank < r->cluster->size && st == STRAIT_OK; rank++)
        st = write_record(r, "summary", at, rank, &records[rank], accuracy);
    text_free(&slowest);
    return st;
}
