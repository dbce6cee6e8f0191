/* SPDX-License-Identifier: Apache-2.0
 * collective.c - bounded collectives and agreement on statuses. */
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cluster/cluster.h"

static strait_status mpi_failed(const struct cluster *c, int code, const char *what)
{
    char text[MPI_MAX_ERROR_STRING];
    int length;

    MPI_Error_string(code, text, &length);
    return error_set(STRAIT_ERR_MPI, "rank %d on %s: %s: %s", c->rank, cluster_host(c, c->rank),
                     what, text);
}

strait_status cluster_wait(const struct cluster *c, MPI_Request *request, const char *what)
{
    double begin = clock_s();

    for (int spins = 0;; spins++) {
        int done = 0, code = MPI_Test(request, &done, MPI_STATUS_IGNORE);

        if (code != MPI_SUCCESS) return mpi_failed(c, code, what);
        if (done) return STRAIT_OK;
        if (clock_s() - begin > c->timeout_s)
            return error_set(STRAIT_ERR_TIMEOUT,
                             "waited %.0f s for all ranks to take part in %s; look for a rank that "
                             "ended or hangs, or raise fault.timeout_s",
                             c->timeout_s, what);
        if (spins < 200) sched_yield(); /* ranks may outnumber cores: never spin hard */
        else clock_sleep_us(100);
    }
}

strait_status cluster_allgather(const struct cluster *c, const void *mine, size_t bytes, void *all,
                                const char *what)
{
    MPI_Request request = MPI_REQUEST_NULL;
    int code;

    if (bytes > INT_MAX) return error_set(STRAIT_ERR_USAGE, "%s: more than 2 GiB", what);
    code = MPI_Iallgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, c->comm, &request);
    return code != MPI_SUCCESS ? mpi_failed(c, code, what) : cluster_wait(c, &request, what);
}

strait_status cluster_broadcast(const struct cluster *c, void *buffer, size_t bytes,
                                const char *what)
{
    MPI_Request request = MPI_REQUEST_NULL;
    int code;

    if (bytes > INT_MAX) return error_set(STRAIT_ERR_USAGE, "%s: more than 2 GiB", what);
    code = MPI_Ibcast(buffer, (int)bytes, MPI_BYTE, 0, c->comm, &request);
    return code != MPI_SUCCESS ? mpi_failed(c, code, what) : cluster_wait(c, &request, what);
}

strait_status cluster_barrier(const struct cluster *c, const char *what)
{
    MPI_Request request = MPI_REQUEST_NULL;
    int code = MPI_Ibarrier(c->comm, &request);

    return code != MPI_SUCCESS ? mpi_failed(c, code, what) : cluster_wait(c, &request, what);
}

strait_status cluster_broadcast_text(const struct cluster *c, struct text *text, const char *what)
{
    uint64_t length = text->length;
    char *bytes = NULL;
    strait_status st;

    if ((st = cluster_broadcast(c, &length, sizeof length, what))) return st;
    if (length > 64u << 20) return error_set(STRAIT_ERR_FORMAT, "%s: too long", what);
    if ((bytes = calloc(1, (size_t)length + 1)) == NULL) return error_memory(what);
    if (c->rank == 0) memcpy(bytes, text_string(text), (size_t)length);
    st = cluster_broadcast(c, bytes, (size_t)length, what);
    if (st == STRAIT_OK && c->rank != 0) {
        text_free(text);
        text_add(text, "%s", bytes);
    }
    free(bytes);
    return st;
}

struct report {
    int status;
    char message[1024];
};

static strait_status adopt(const struct cluster *c, const struct report *reports, int first)
{
    const struct report *report = &reports[first];

    if (first == 0 || strcmp(report->message, reports[0].message) == 0)
        return error_set((strait_status)report->status, "%s", report->message);
    return error_set((strait_status)report->status, "rank %d on %s: %s", first,
                     cluster_host(c, first), report->message);
}

strait_status cluster_agree(const struct cluster *c, strait_status mine, const char *what)
{
    struct report report = { .status = mine }, *all = calloc((size_t)c->size, sizeof *all);
    strait_status st;

    if (all == NULL) return error_memory(what); /* the others wait until their bound */
    if (mine != STRAIT_OK)
        strncpy(report.message, strait_error_message(), sizeof report.message - 1);
    if ((st = cluster_allgather(c, &report, sizeof report, all, what)) == STRAIT_OK)
        for (int r = c->size - 1; r >= 0; r--)
            if (all[r].status != STRAIT_OK) {
                all[r].message[sizeof all[r].message - 1] = '\0';
                st = adopt(c, all, r);
            }
    free(all);
    return st;
}
