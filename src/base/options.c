/* SPDX-License-Identifier: Apache-2.0
 * options.c - the table of all configuration keys, and look-ups in it.
 *
 * To add a key: a field in struct strait_config, a row here, and
 * `make update-reference` for the page. */
#include <string.h>
#include <strings.h>

#include "base/config.h"

#define AT(field) offsetof(struct strait_config, field)
#define LARGE 9.0e15 /* every integer up to here is exact in a double */

static const char *const formats[] = { "csv", "idx", NULL };
static const char *const models[] = { "mlp", NULL };
static const char *const optimizers[] = { "sgd", "adam", NULL };
static const char *const codecs[] = { "fp32", "bf16", "fp16", "int8", "topk", "fp8", "int4",
                                     "int2", "onebit", "randk", "powersgd", NULL };
static const char *const schedules[] = { "sra", "ring", "hierarchical", "allgather",
                                        "dense", NULL };
static const char *const transports[] = { "ucx", "mpi", NULL };
static const char *const nonfinites[] = { "skip", "stop", NULL };
static const char *const topk_values[] = { "fp32", "fp16", "int8", "int2", NULL };
static const char *const roundings[] = { "nearest", "stochastic", NULL };
static const char *const residuals[] = { "fp32", "bf16", NULL };
static const char *const progresses[] = { "auto", "line", "plain", "off", NULL };

#define STRING(k, d, f, h) { .key = k, .type = OPTION_STRING, .unit = "", .fallback = d, \
                             .offset = AT(f), .help = h }
#define PATH(k, d, f, h) { .key = k, .type = OPTION_PATH, .unit = "", .fallback = d, \
                           .offset = AT(f), .help = h }
#define CHOICE(k, d, c, f, h) { .key = k, .type = OPTION_CHOICE, .unit = "", .fallback = d, \
                                .choices = c, .offset = AT(f), .help = h }
#define INT(k, u, d, lo, hi, f, h) { .key = k, .type = OPTION_INT, .unit = u, .fallback = d, \
                                     .min = lo, .max = hi, .offset = AT(f), .help = h }
/* Multiples of s only. */
#define STEPS(k, u, d, lo, hi, s, f, h) { .key = k, .type = OPTION_INT, .unit = u, .fallback = d, \
                                          .min = lo, .max = hi, .step = s, .offset = AT(f), \
                                          .help = h }
#define REAL(k, u, d, lo, hi, f, h) { .key = k, .type = OPTION_REAL, .unit = u, .fallback = d, \
                                      .min = lo, .max = hi, .offset = AT(f), .help = h }
#define BOOL(k, d, f, h) { .key = k, .type = OPTION_BOOL, .unit = "", .fallback = d, \
                           .offset = AT(f), .help = h }
#define LIST(k, u, d, lo, hi, f, h) { .key = k, .type = OPTION_LIST, .unit = u, .fallback = d, \
                                      .min = lo, .max = hi, .offset = AT(f), .help = h }

const struct option config_options[] = {
    STRING("run.name", "train", run.name, "name of the job; part of the run folder's name"),
    PATH("run.dir", "runs", run.dir, "folder that receives one folder per run"),
    INT("run.seed", "", "1", 0, LARGE, run.seed,
        "seed of the initial weights and of the order of samples"),

    CHOICE("data.format", "csv", formats, data.format,
           "csv: a sample a line, the class last; idx: the format of MNIST and its kin"),
    PATH("data.path", "", data.path, "csv: the file of samples"),
    PATH("data.images", "", data.images, "idx: training images, unpacked (not .gz)"),
    PATH("data.labels", "", data.labels, "idx: training labels, unpacked (not .gz)"),
    PATH("data.test_images", "", data.test_images,
         "idx: held-out images; without them data.holdout applies"),
    PATH("data.test_labels", "", data.test_labels, "idx: held-out labels"),
    REAL("data.holdout", "", "0.2", 0.0, 0.9, data.holdout,
         "share of the samples kept out of training, evenly spread over the file"),

    CHOICE("model.type", "mlp", models, model.type,
           "mlp: fully connected layers with ReLU between them, softmax cross-entropy"),
    LIST("model.hidden", "units", "128", 1, 65536, model.hidden, "width of each hidden layer"),

    INT("train.epochs", "", "10", 1, 1e6, train.epochs, "passes over the training samples"),
    INT("train.batch", "samples", "32", 1, 1e6, train.batch,
        "samples per rank and step; the global batch is this times the ranks"),
    INT("train.threads", "threads", "1", 1, 1024, train.threads,
        "threads of the matrix library in each rank; more may change rounding"),
    CHOICE("train.optimizer", "sgd", optimizers, train.optimizer,
           "sgd: with momentum; adam: Kingma and Ba 2015, arXiv 1412.6980"),
    REAL("train.lr", "", "0.1", 1e-12, 1e6, train.lr, "learning rate"),
    REAL("train.momentum", "", "0.9", 0.0, 0.9999, train.momentum, "sgd: momentum"),
    REAL("train.beta1", "", "0.9", 0.0, 0.999999, train.beta1, "adam: decay of the first moment"),
    REAL("train.beta2", "", "0.999", 0.0, 0.99999999, train.beta2,
         "adam: decay of the second moment"),
    REAL("train.epsilon", "", "1e-8", 1e-30, 1.0, train.epsilon, "adam: added to the root"),
    REAL("train.weight_decay", "", "0", 0.0, 1.0, train.weight_decay,
         "share of each weight added to its gradient; biases have none"),

    CHOICE("comm.codec", "int8", codecs, comm.codec,
           "how gradients are encoded: docs/wire-format.md"),
    CHOICE("comm.schedule", "sra", schedules, comm.schedule,
           "sra: payloads to the owner of each slice and back; ring: sums passed on from rank to "
           "rank, encoded anew each time; hierarchical: fp32 within a node, sra between nodes; "
           "allgather: all payloads to all; dense: the reference, MPI_Allreduce in fp32 after a "
           "local encode and decode"),
    STRING("comm.nodes", "", comm.nodes,
           "rehearse a layout on one machine: the node of each rank, as 0,0,1,1 for four; empty: "
           "as MPI finds them"),
    CHOICE("comm.transport", "ucx", transports, comm.transport,
           "ucx: shared memory, TCP or RDMA as UCX finds; mpi: the fallback"),
    REAL("comm.bucket_mb", "MiB", "4", 0.001, 4096, comm.bucket_mb,
         "gradients exchanged together; a larger tensor has a bucket of its own"),
    REAL("comm.slice_kb", "KiB", "256", 0.25, 1048576, comm.slice_kb,
         "gradient that one message carries, before encoding; a tile has a slice per rank"),
    INT("comm.window", "tiles", "8", 1, 1024, comm.window,
        "tiles under way at once, as many as take no more than twice comm.bucket_mb encoded, or "
        "two: more overlap, more memory"),
    INT("comm.threads", "threads", "1", 1, 256, comm.threads,
        "of each rank, to encode and decode; 1: the thread that moves messages does that too"),
    INT("comm.dense_below", "elements", "1024", 0, LARGE, comm.dense_below,
        "tensors with fewer elements travel as fp32"),
    STEPS("comm.block", "elements", "256", 8, 65536, 8, comm.block,
          "fp8, int8, int4, int2, onebit: elements that share a scale"),
    REAL("comm.topk_ratio", "", "0.05", 1e-6, 1.0, comm.topk_ratio,
         "topk: share of each slice's elements that is sent: the largest"),
    CHOICE("comm.topk_values", "fp32", topk_values, comm.topk_values,
           "topk: how their values are sent; int8: with a scale for every 256; int2: their signs "
           "and two magnitudes for every 256. What that loses stays in the residual"),
    REAL("comm.randk_ratio", "", "0.25", 1e-6, 1.0, comm.randk_ratio,
         "randk: share of each slice's elements that is sent: drawn by chance"),
    INT("comm.ratio_warmup_steps", "steps", "0", 0, LARGE, comm.ratio_warmup_steps,
        "topk, randk: steps, after comm.warmup_steps, in which the share that is sent falls by the "
        "same factor each, from comm.ratio_warmup_from to the codec's ratio"),
    REAL("comm.ratio_warmup_from", "", "0.25", 1e-6, 1.0, comm.ratio_warmup_from,
         "topk, randk: the share in the first of those steps, where it is larger"),
    INT("comm.powersgd_rank", "", "4", 1, 64, comm.powersgd_rank,
        "powersgd: columns of the two factors that stand for each matrix (arXiv 1905.13727); a "
        "tensor is a matrix of its first dimension by all others, and travels as fp32 where that "
        "is no longer"),
    CHOICE("comm.rounding", "nearest", roundings, comm.rounding,
           "fp8, int8, int4, int2: to the nearest code, or to one of the two around the value by "
           "chance, so that the mean is right (int2: with a larger scale)"),
    INT("comm.seed", "", "1", 0, LARGE, comm.seed,
        "of what is drawn by chance, with the step, the bucket and the element"),
    BOOL("comm.error_feedback", "true", comm.error_feedback,
         "add what a lossy codec failed to send to the next step's gradient"),
    CHOICE("comm.residual", "fp32", residuals, comm.residual,
           "what is kept of that: fp32; bf16: half the memory, rounded"),
    REAL("comm.momentum_correction", "", "0", 0.0, 0.9999, comm.momentum_correction,
         "momentum that each rank applies to its own gradient before it is encoded, in place of "
         "train.momentum; topk, randk: what is sent of it is lost (arXiv 1712.01887); 0: none"),
    REAL("comm.clip_norm", "", "0", 0.0, 1e30, comm.clip_norm,
         "before that, each rank scales each tensor's gradient down to an L2 norm of this by "
         "the square root of the number of ranks; 0: never"),
    INT("comm.warmup_steps", "steps", "0", 0, LARGE, comm.warmup_steps,
        "first steps that travel as fp32"),
    INT("comm.check_every", "steps", "50", 0, LARGE, comm.check_every,
        "compare a fingerprint of the averaged gradients across ranks this often; 0: never"),
    BOOL("comm.checksum", "false", comm.checksum,
         "an xxHash64 in every message: bytes that change on the way are an error, and not a "
         "gradient that the fingerprint may find later; not with schedule dense"),
    CHOICE("comm.nonfinite", "skip", nonfinites, comm.nonfinite,
           "when a gradient is NaN or infinite on any rank: all ranks skip the step, or all stop"),

    REAL("fault.timeout_s", "s", "60", 0.1, 86400, fault.timeout_s,
         "a wait for another rank that lasts longer ends the job"),

    INT("report.every", "steps", "0", 0, LARGE, report.every,
        "reporting interval; 0: once an epoch"),
    CHOICE("report.progress", "auto", progresses, report.progress,
           "auto: one live line on a terminal, plain lines elsewhere"),
};

const int config_option_count = (int)(sizeof config_options / sizeof config_options[0]);
_Static_assert(sizeof config_options / sizeof config_options[0] <= CONFIG_OPTIONS_MAX,
               "raise CONFIG_OPTIONS_MAX");

const struct option *option_find(const char *key)
{
    for (int i = 0; i < config_option_count; i++)
        if (strcmp(config_options[i].key, key) == 0) return &config_options[i];
    return NULL;
}

const struct option *option_nearest(const char *key)
{
    const struct option *nearest = NULL;
    unsigned best = 4; /* farther words only confuse */

    for (int i = 0; i < config_option_count; i++) {
        const struct option *option = &config_options[i];
        const char *name = strchr(option->key, '.') + 1;
        const char *wanted = strchr(key, '.') != NULL ? strchr(key, '.') + 1 : key;
        unsigned distance = text_distance(key, option->key);

        /* the right name in the wrong group is one slip, not many letters */
        if (strcmp(name, wanted) == 0 && distance > 1) distance = 1;
        if (distance < best) {
            best = distance;
            nearest = option;
        }
    }
    return nearest;
}

void option_allowed(const struct option *option, struct text *out)
{
    switch (option->type) {
    case OPTION_INT:
        text_add(out, option->max >= LARGE ? "an integer from %.0f" : "an integer, %.0f .. %.0f",
                 option->min, option->max);
        if (option->step > 0) text_add(out, ", a multiple of %lld", (long long)option->step);
        break;
    case OPTION_REAL:
        text_add(out, "a number, %.10g .. %.10g", option->min, option->max);
        break;
    case OPTION_LIST:
        text_add(out, "up to %d integers, each %.0f .. %.0f", CONFIG_LIST_MAX, option->min,
                 option->max);
        break;
    case OPTION_BOOL:
        text_add(out, "true, false");
        break;
    case OPTION_CHOICE:
        for (int i = 0; option->choices[i] != NULL; i++)
            text_add(out, "%s%s", i > 0 ? ", " : "", option->choices[i]);
        break;
    case OPTION_STRING:
    case OPTION_PATH:
        text_add(out, "a string of up to %d bytes", CONFIG_TEXT_BYTES - 1);
        break;
    }
}
