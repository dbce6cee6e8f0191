/* SPDX-License-Identifier: Apache-2.0
 * cmd_train.c - `strait train`: rank 0 reads the configuration, all ranks train.
 *
 * An error that all ranks know is printed once and all end in peace. One that a single
 * rank knows is printed by that rank, and the job is aborted so that nobody waits. */
#include <signal.h>

#include "base/log.h"
#include "cluster/cluster.h"
#include "launcher.h"
#include "train/train.h"

/* Enough for a configuration to arrive; the job's own bound is not known before. */
static const double start_timeout_s = 60;

static void print_help(void)
{
    printf("Usage: mpirun -np N strait train FILE [--set group.key=value]...\n\n"
           "Train as FILE says, with N ranks; without mpirun, with one.\n\n"
           "  FILE             a configuration: docs/configuration.md, `strait config reference`\n"
           "  --set KEY=VALUE  go over one value of the file; may be given many times\n"
           "  --help           this text\n\n"
           "Examples:\n"
           "  mpirun -np 4 --oversubscribe --bind-to none strait train configs/smoke.conf\n"
           "  mpirun -np 4 --oversubscribe --bind-to none strait train configs/smoke.conf \\\n"
           "      --set comm.codec=topk\n\n"
           "Results go to a folder of their own below run.dir: the effective configuration\n"
           "(config.conf) and a record per rank and interval (metrics.jsonl).\n");
}

/* Rank 0's configuration becomes everyone's. */
static strait_status share_config(const struct config_arguments *arguments,
                                  const struct cluster *cluster, struct strait_config *config)
{
    struct text packed = { 0 };
    strait_status st = STRAIT_OK;

    if (cluster->rank == 0) st = load_config(arguments, config);
    if ((st = cluster_agree(cluster, st, "reading the configuration"))) return st;
    if (cluster->rank == 0) config_pack(config, &packed);
    st = cluster_broadcast_text(cluster, &packed, "the configuration");
    if (st == STRAIT_OK && cluster->rank != 0) st = config_unpack(config, text_string(&packed));
    text_free(&packed);
    return cluster_agree(cluster, st, "the configuration");
}

static strait_status run(const struct config_arguments *arguments, struct cluster **cluster,
                         bool *agreed)
{
    struct strait_config config;
    strait_status st;

    *agreed = false;
    if ((st = cluster_open(cluster, MPI_COMM_WORLD, start_timeout_s))) return st;
    *agreed = true;
    if ((st = share_config(arguments, *cluster, &config))) return st;
    (*cluster)->timeout_s = config.fault.timeout_s;
    if ((st = cluster_rehearse(*cluster, config.comm.nodes))) return st;
    return train_run(&config, *cluster, agreed);
}

int cmd_train(int argc, char **argv)
{
    struct config_arguments arguments;
    struct cluster *cluster = NULL;
    int level, code = 0;
    bool agreed;
    strait_status st;

    if (!parse_config_arguments("train", argc, argv, &arguments)) return EXIT_USAGE;
    if (arguments.help) {
        if (speaks()) print_help();
        return 0;
    }
    signal(SIGXFSZ, SIG_IGN); /* a file-size limit is an error of write(), with a message */
    signal(SIGPIPE, SIG_IGN);
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level) != MPI_SUCCESS) return 1;
    st = run(&arguments, &cluster, &agreed);
    /* a rank whose own wait ran out, or whose MPI failed, cannot know of the others */
    if (st == STRAIT_ERR_TIMEOUT || st == STRAIT_ERR_MPI) agreed = false;
    if (st != STRAIT_OK) {
        code = error_exit_code(st);
        if (!agreed) log_write(LOG_ERROR, "%s", strait_error_message());
        else if (speaks()) fprintf(stderr, "strait: %s\n", strait_error_message());
        if (!agreed) MPI_Abort(MPI_COMM_WORLD, code);
    }
    cluster_close(cluster);
    MPI_Finalize();
    return code;
}
