/* SPDX-License-Identifier: Apache-2.0
 * mpi.c - the fallback and reference transport: MPI_Isend and MPI_Irecv.
 *
 * MPI has nothing to sleep on, so waiting means short naps between tests. */
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <time.h>

#include "transport/transport.h"

enum { NAP_US = 50 };

struct mpi {
    struct transport base;
    MPI_Comm comm;
    struct transfer *active; /* a list; the request of each is an MPI_Request */
};

_Static_assert(sizeof(MPI_Request) <= sizeof(void *), "a request must fit a transfer");

static strait_status mpi_close(struct transport *t, bool broken);

static strait_status mpi_open(struct transport **out, const struct cluster *cluster)
{
    struct mpi *m = calloc(1, sizeof *m);

    if (m == NULL) return error_memory("the mpi transport");
    m->base.cluster = cluster;
    m->comm = MPI_COMM_NULL;
    if (MPI_Comm_dup(cluster->comm, &m->comm) ||
        MPI_Comm_set_errhandler(m->comm, MPI_ERRORS_RETURN)) {
        mpi_close(&m->base, true);
        return error_set(STRAIT_ERR_MPI, "MPI could not duplicate the communicator");
    }
    *out = &m->base;
    return STRAIT_OK;
}

static void fail(struct transfer *transfer, int code)
{
    int class = MPI_ERR_OTHER;

    MPI_Error_class(code, &class);
    transfer->status = class == MPI_ERR_TRUNCATE ? STRAIT_ERR_FORMAT : STRAIT_ERR_TRANSPORT;
    transfer->why = class == MPI_ERR_TRUNCATE ? "the message is longer than was agreed"
                                              : "MPI reports an error";
    transfer_end(transfer, TRANSFER_FAILED);
}

static void began(struct mpi *m, struct transfer *transfer, int code, MPI_Request request)
{
    if (code != MPI_SUCCESS) {
        fail(transfer, code);
        return;
    }
    transfer->request = (void *)request;
    transfer->next = m->active;
    m->active = transfer;
}

static void mpi_send(struct transport *t, uint32_t tag, const void *buffer,
                     struct transfer *transfer)
{
    struct mpi *m = (struct mpi *)t;
    MPI_Request request = MPI_REQUEST_NULL;
    int code = transfer->bytes > INT_MAX
                   ? MPI_ERR_COUNT
                   : MPI_Isend(buffer, (int)transfer->bytes, MPI_BYTE, transfer->peer, (int)tag,
                               m->comm, &request);

    began(m, transfer, code, request);
}

static void mpi_recv(struct transport *t, uint32_t tag, void *buffer, struct transfer *transfer)
{
    struct mpi *m = (struct mpi *)t;
    MPI_Request request = MPI_REQUEST_NULL;
    int code = transfer->bytes > INT_MAX
                   ? MPI_ERR_COUNT
                   : MPI_Irecv(buffer, (int)transfer->bytes, MPI_BYTE, transfer->peer, (int)tag,
                               m->comm, &request);

    began(m, transfer, code, request);
}

/* Test one transfer; true when it ended. */
static bool ended(struct transfer *transfer)
{
    MPI_Request request = (MPI_Request)transfer->request;
    MPI_Status status;
    int done = 0, count = 0, code = MPI_Test(&request, &done, &status);

    if (code != MPI_SUCCESS) {
        fail(transfer, code);
        return true;
    }
    if (!done) return false;
    /* of a send, the status says nothing and the bytes stay as they were asked */
    if (status.MPI_SOURCE == transfer->peer && MPI_Get_count(&status, MPI_BYTE, &count) == 0 &&
        count != MPI_UNDEFINED)
        transfer->bytes = (size_t)count;
    transfer_end(transfer, TRANSFER_DONE);
    return true;
}

static bool mpi_progress(struct transport *t)
{
    struct mpi *m = (struct mpi *)t;
    bool moved = false;

    for (struct transfer **at = &m->active; *at != NULL;) {
        struct transfer *next = (*at)->next; /* one that has ended may be used again at once */

        if (ended(*at)) {
            *at = next;
            moved = true;
        } else {
            at = &(*at)->next;
        }
    }
    return moved;
}

static void mpi_wait(struct transport *t, int wake_fd, long timeout_us)
{
    struct mpi *m = (struct mpi *)t;
    struct pollfd wake = { .fd = wake_fd, .events = POLLIN };
    bool active;
    struct timespec nap;

    pthread_mutex_lock(&t->lock);
    active = m->active != NULL;
    pthread_mutex_unlock(&t->lock);
    if (active && timeout_us > NAP_US) timeout_us = NAP_US;
    nap = (struct timespec){ timeout_us / 1000000, timeout_us % 1000000 * 1000 };
    ppoll(&wake, 1, &nap, NULL);
}

static void mpi_cancel(struct transport *t, struct transfer *transfer)
{
    struct mpi *m = (struct mpi *)t;
    MPI_Request request = (MPI_Request)transfer->request;

    for (struct transfer **at = &m->active; *at != NULL; at = &(*at)->next)
        if (*at == transfer) {
            *at = transfer->next;
            break;
        }
    MPI_Cancel(&request);
    MPI_Request_free(&request);
    transfer->state = TRANSFER_IDLE;
}

static void mpi_describe(struct transport *t, int peer, struct text *out)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;

    (void)t, (void)peer;
    MPI_Get_library_version(version, &length);
    for (int i = 0; version[i] != '\0'; i++)
        if (version[i] == ',' || version[i] == '\n') version[i] = '\0';
    text_add(out, "%s, point to point", version);
}

static strait_status mpi_close(struct transport *t, bool broken)
{
    struct mpi *m = (struct mpi *)t;

    /* with messages still under way the communicator cannot be freed without waiting */
    if (m->comm != MPI_COMM_NULL && !broken) MPI_Comm_free(&m->comm);
    free(m);
    return STRAIT_OK;
}

const struct transport_ops transport_mpi = {
    .name = "mpi", .uses_mpi = true, .open = mpi_open, .send = mpi_send,
    .recv = mpi_recv, .progress = mpi_progress, .wait = mpi_wait, .cancel = mpi_cancel,
    .describe = mpi_describe, .close = mpi_close,
};
