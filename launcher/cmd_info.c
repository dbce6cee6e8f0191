/* SPDX-License-Identifier: Apache-2.0
 * cmd_info.c - `strait info`: the build, this host, and, under mpirun, what UCX chose to
 * reach the peers. */
#include <hwloc.h>
#include <stdlib.h>
#include <string.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

#include "build.h"
#include "cluster/cluster.h"
#include "codec/codec.h"
#include "launcher.h"
#include "schedule/schedule.h"

static void print_help(void)
{
    printf("Usage: strait info\n"
           "       mpirun -np N strait info\n\n"
           "Version, build features, and what was detected on this host. Under mpirun with two\n"
           "ranks or more, also what each transport uses to reach peers within the node and on\n"
           "other nodes.\n");
}

static void print_build(void)
{
    char mpi[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;

    MPI_Get_library_version(mpi, &length);
    mpi[strcspn(mpi, ",\n")] = '\0';
    printf("strait %s\n\nbuild\n", strait_version());
    printf("  compiler     %s\n", BUILD_COMPILER);
    printf("  MPI          %s\n", mpi);
    printf("  UCX          %s\n", ucp_get_version_string());
    printf("  BLAS         %s\n", BUILD_BLAS);
    printf("  sanitizers   %s\n", BUILD_SANITIZERS);
    printf("  devices      host\n");
    printf("  codecs      ");
    for (int i = 0; codec_table[i] != NULL; i++) printf(" %s", codec_table[i]->name);
    printf("\n  schedules   ");
    for (int i = 0; schedule_table[i] != NULL; i++) printf(" %s", schedule_table[i]->name);
    printf("\n  transports  ");
    for (int i = 0; transport_table[i] != NULL; i++) printf(" %s", transport_table[i]->name);
    printf("\n");
}

static void print_devices(hwloc_topology_t topology)
{
    hwloc_obj_t device = NULL;

    printf("  network     ");
    while ((device = hwloc_get_next_osdev(topology, device)) != NULL)
        if (device->attr->osdev.type == HWLOC_OBJ_OSDEV_NETWORK ||
            device->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS)
            printf(" %s", device->name);
    printf("\n");
}

static void print_host(void)
{
    hwloc_topology_t topology;
    char host[256] = "unknown";

    gethostname(host, sizeof host - 1);
    printf("\nhost\n  name         %s\n", host);
    if (hwloc_topology_init(&topology) != 0) return;
    hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
    if (hwloc_topology_load(topology) == 0) {
        const char *model =
            hwloc_obj_get_info_by_name(hwloc_get_root_obj(topology), "CPUModel");
        hwloc_obj_t package = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PACKAGE, 0);

        if (model == NULL && package != NULL)
            model = hwloc_obj_get_info_by_name(package, "CPUModel");
        printf("  processor    %s\n", model != NULL ? model : "unknown");
        printf("  cores        %d (%d hardware threads, %d NUMA nodes)\n",
               hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE),
               hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU),
               hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE));
        printf("  memory       %.1f GB\n",
               1e-9 * (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE));
        print_devices(topology);
    }
    hwloc_topology_destroy(topology);
}

/* UCP names the resources it could use only in print: `resource 0 : ... self/memory`. */
static void print_ucx_resources(void)
{
    ucp_params_t params = { .field_mask = UCP_PARAM_FIELD_FEATURES,
                            .features = UCP_FEATURE_TAG | UCP_FEATURE_WAKEUP };
    ucp_context_h context;
    char *print = NULL, *rest = NULL;
    size_t size;
    FILE *stream;

    printf("  UCX offers  ");
    if (ucp_init(&params, NULL, &context) != UCS_OK) {
        printf(" nothing: see `ucx_info -d` and UCX_TLS\n");
        return;
    }
    if ((stream = open_memstream(&print, &size)) != NULL) {
        ucp_context_print_info(context, stream);
        fclose(stream);
    }
    for (char *line = strtok_r(print, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest))
        if (strstr(line, "resource") != NULL && strrchr(line, ' ') != NULL)
            printf(" %s", strrchr(line, ' ') + 1);
    printf("\n");
    free(print);
    ucp_cleanup(context);
}

static strait_status print_peers(void)
{
    strait_config *config = NULL;
    strait_status st = strait_config_create(&config);

    for (int i = 0; transport_table[i] != NULL && st == STRAIT_OK; i++) {
        strait_context *ctx = NULL;
        char assignment[64];

        snprintf(assignment, sizeof assignment, "comm.transport=%s", transport_table[i]->name);
        if ((st = strait_config_set(config, assignment))) break;
        if ((st = strait_open(&ctx, config, MPI_COMM_WORLD))) break;
        if (speaks())
            printf("%s  within a node: %s; between nodes: %s\n",
                   i == 0 ? "\npeers of rank 0\n" : "",
                   strait_transport_path(ctx, STRAIT_WITHIN_NODE),
                   strait_transport_path(ctx, STRAIT_BETWEEN_NODES));
        st = strait_close(ctx);
    }
    strait_config_destroy(config);
    return st;
}

static int with_mpi(void)
{
    int level;
    strait_status st;

    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level) != MPI_SUCCESS) return 1;
    st = print_peers();
    if (st != STRAIT_OK) report_error(st);
    MPI_Finalize();
    return error_exit_code(st);
}

int cmd_info(int argc, char **argv)
{
    bool help = argc == 1 && (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0);

    if (help && speaks()) print_help();
    if (help) return 0;
    if (argc > 0) return usage_error("info", "unknown argument %s", argv[0]);
    if (speaks()) {
        print_build();
        print_host();
        print_ucx_resources();
        if (job_size() == 1)
            printf("\npeers: none; `mpirun -np 2 strait info` shows how ranks reach each other\n");
        fflush(stdout);
    }
    return job_size() > 1 ? with_mpi() : 0;
}
