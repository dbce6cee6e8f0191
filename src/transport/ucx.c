/* SPDX-License-Identifier: Apache-2.0
 * ucx.c - the default transport: tagged messages of UCX's UCP layer.
 *
 * One worker per context, driven by the thread that calls in; it sleeps on the worker's
 * event descriptor, so waiting costs no core. UCX picks shared memory, TCP or RDMA by
 * itself and by its UCX_* variables. The 64-bit UCX tag is the sender's rank above the
 * transport's tag. Endpoints to other nodes are made with peer error handling; within
 * a node they are not, because UCX would then refuse shared memory, and a rank that
 * dies there is noticed by the bound on every wait. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <ucp/api/ucp.h>

#include "base/clock.h"
#include "base/log.h"
#include "transport/transport.h"

struct endpoint {
    ucp_ep_h ep;
    ucs_status_t failure; /* what UCX said when the peer went away */
    void *closing;        /* the request that closes it */
};

struct ucx {
    struct transport base;
    ucp_context_h context;
    ucp_worker_h worker;
    int event_fd;
    struct endpoint *endpoints; /* by rank; none to this rank itself */
    double cancel_by;           /* when taking messages back must have ended; 0: not begun */
    bool stuck;                 /* one could not be taken back */
};

static const uint64_t tag_mask = UINT64_MAX;
enum { CLOSE_BOUND_S = 5, CANCEL_BOUND_S = 1, ADDRESS_LIMIT = 1 << 16 };

static uint64_t full_tag(int sender, uint32_t tag)
{
    return (uint64_t)sender << TRANSPORT_TAG_BITS | tag;
}

/* ---- opening ---- */
static strait_status ucx_failed(const char *what, ucs_status_t status)
{
    return error_set(STRAIT_ERR_TRANSPORT, "ucx: %s: %s; see `ucx_info -d` and the UCX_TLS and "
                     "UCX_NET_DEVICES variables",
                     what, ucs_status_string(status));
}

static strait_status open_worker(struct ucx *u)
{
    ucp_params_t params = {
        .field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS |
                      UCP_PARAM_FIELD_NAME,
        .features = UCP_FEATURE_TAG | UCP_FEATURE_WAKEUP,
        .estimated_num_eps = (size_t)u->base.cluster->size,
        .name = "strait",
    };
    ucp_worker_params_t worker = {
        .field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
        .thread_mode = UCS_THREAD_MODE_SERIALIZED, /* opened in one thread, used in another */
    };
    ucp_config_t *config = NULL;
    ucs_status_t status = ucp_config_read(NULL, NULL, &config);

    if (status != UCS_OK) return ucx_failed("reading its configuration", status);
    status = ucp_init(&params, config, &u->context);
    ucp_config_release(config);
    if (status != UCS_OK) return ucx_failed("starting", status);
    if ((status = ucp_worker_create(u->context, &worker, &u->worker)) != UCS_OK)
        return ucx_failed("making a worker", status);
    if ((status = ucp_worker_get_efd(u->worker, &u->event_fd)) != UCS_OK)
        return ucx_failed("getting an event descriptor", status);
    return STRAIT_OK;
}

/* All ranks' worker addresses, padded to the same size; *stride is that size. */
static strait_status exchange_addresses(struct ucx *u, uint8_t **all, size_t *stride)
{
    const struct cluster *c = u->base.cluster;
    uint64_t *lengths = calloc((size_t)c->size, sizeof *lengths), mine;
    ucp_address_t *address = NULL;
    uint8_t *padded = NULL;
    size_t length = 0;
    ucs_status_t status = ucp_worker_get_address(u->worker, &address, &length);
    strait_status st;

    if (status != UCS_OK) address = NULL;
    st = status == UCS_OK ? STRAIT_OK : ucx_failed("getting the worker's address", status);
    if (lengths == NULL) st = error_memory("worker addresses");
    if ((st = cluster_agree(c, st, "making UCX workers"))) goto done;
    mine = length;
    if ((st = cluster_allgather(c, &mine, sizeof mine, lengths, "UCX address sizes"))) goto done;
    *stride = 1;
    for (int r = 0; r < c->size; r++) {
        if (lengths[r] == 0 || lengths[r] > ADDRESS_LIMIT) {
            st = error_set(STRAIT_ERR_FORMAT, "rank %d on %s announces a UCX address of %llu bytes",
                           r, cluster_host(c, r), (unsigned long long)lengths[r]);
            goto done;
        }
        if (lengths[r] > *stride) *stride = (size_t)lengths[r];
    }
    padded = calloc(1, *stride);
    *all = calloc((size_t)c->size, *stride);
    st = padded == NULL || *all == NULL ? error_memory("worker addresses") : STRAIT_OK;
    if ((st = cluster_agree(c, st, "UCX addresses"))) goto done;
    memcpy(padded, address, length);
    st = cluster_allgather(c, padded, *stride, *all, "UCX addresses");
done:
    if (address != NULL) ucp_worker_release_address(u->worker, address);
    free(lengths);
    free(padded);
    return st;
}

static void on_peer_failure(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    struct endpoint *endpoint = arg;

    (void)ep;
    endpoint->failure = status;
}

static strait_status connect_peers(struct ucx *u, const uint8_t *addresses, size_t stride)
{
    const struct cluster *c = u->base.cluster;

    for (int peer = 0; peer < c->size; peer++) {
        bool remote = cluster_class(c, peer) == STRAIT_BETWEEN_NODES;
        ucp_ep_params_t params = {
            .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                          UCP_EP_PARAM_FIELD_ERR_HANDLER,
            .address = (const ucp_address_t *)(addresses + (size_t)peer * stride),
            .err_mode = remote ? UCP_ERR_HANDLING_MODE_PEER : UCP_ERR_HANDLING_MODE_NONE,
            .err_handler = { on_peer_failure, &u->endpoints[peer] },
        };
        ucs_status_t status;

        if (peer == c->rank) continue;
        status = ucp_ep_create(u->worker, &params, &u->endpoints[peer].ep);
        if (status != UCS_OK)
            return error_set(STRAIT_ERR_TRANSPORT,
                             "ucx: connecting to rank %d on %s: %s; what the nodes share is listed "
                             "by `ucx_info -d`, and UCX_TLS may exclude it",
                             peer, cluster_host(c, peer), ucs_status_string(status));
    }
    return STRAIT_OK;
}

static strait_status ucx_close(struct transport *t, bool broken);

static strait_status ucx_open(struct transport **out, const struct cluster *cluster)
{
    struct ucx *u = calloc(1, sizeof *u);
    uint8_t *addresses = NULL;
    size_t stride = 0;
    strait_status st = u != NULL ? STRAIT_OK : error_memory("the ucx transport");

    if (u != NULL) {
        u->base.cluster = cluster;
        u->endpoints = calloc((size_t)cluster->size, sizeof *u->endpoints);
        st = u->endpoints != NULL ? open_worker(u) : error_memory("endpoints");
    }
    /* from here on all ranks go on together, or none does */
    if ((st = cluster_agree(cluster, st, "starting UCX"))) goto done;
    if ((st = exchange_addresses(u, &addresses, &stride))) goto done;
    if ((st = connect_peers(u, addresses, stride))) goto done;
    *out = &u->base;
    u = NULL;
done:
    if (u != NULL) ucx_close(&u->base, true);
    free(addresses);
    return st;
}

/* ---- moving ---- */
static void end_transfer(struct transfer *transfer, ucs_status_t status)
{
    if (status == UCS_OK) {
        transfer_end(transfer, TRANSFER_DONE);
        return;
    }
    transfer->status = status == UCS_ERR_MESSAGE_TRUNCATED ? STRAIT_ERR_FORMAT
                                                           : STRAIT_ERR_TRANSPORT;
    transfer->why = ucs_status_string(status);
    transfer_end(transfer, TRANSFER_FAILED);
}

static void on_sent(void *request, ucs_status_t status, void *arg)
{
    struct transfer *transfer = arg;

    transfer->request = NULL;
    end_transfer(transfer, status);
    ucp_request_free(request);
}

static void on_received(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info,
                        void *arg)
{
    struct transfer *transfer = arg;

    transfer->request = NULL;
    if (status == UCS_OK) transfer->bytes = info->length;
    end_transfer(transfer, status);
    ucp_request_free(request);
}

static void began(struct transfer *transfer, ucs_status_ptr_t request)
{
    if (transfer->state != TRANSFER_ACTIVE) return; /* its callback came before its handle */
    if (UCS_PTR_IS_PTR(request)) transfer->request = request;
    else end_transfer(transfer, UCS_PTR_STATUS(request));
}

static void ucx_send(struct transport *t, uint32_t tag, const void *buffer,
                     struct transfer *transfer)
{
    struct ucx *u = (struct ucx *)t;
    struct endpoint *endpoint = &u->endpoints[transfer->peer];
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
        .cb.send = on_sent,
        .user_data = transfer,
    };

    if (endpoint->failure != UCS_OK) {
        end_transfer(transfer, endpoint->failure);
        return;
    }
    began(transfer, ucp_tag_send_nbx(endpoint->ep, buffer, transfer->bytes,
                                     full_tag(t->cluster->rank, tag), &param));
}

static void ucx_recv(struct transport *t, uint32_t tag, void *buffer, struct transfer *transfer)
{
    struct ucx *u = (struct ucx *)t;
    ucp_request_param_t param = {
        /* never complete at once: before 1.16 UCX tells the received size in the callback
         * alone (openucx/ucx issue 9425) */
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                        UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
        .cb.recv = on_received,
        .user_data = transfer,
    };

    began(transfer, ucp_tag_recv_nbx(u->worker, buffer, transfer->bytes,
                                     full_tag(transfer->peer, tag), tag_mask, &param));
}

static bool ucx_progress(struct transport *t)
{
    return ucp_worker_progress(((struct ucx *)t)->worker) != 0;
}

static void ucx_wait(struct transport *t, int wake_fd, long timeout_us)
{
    struct ucx *u = (struct ucx *)t;
    struct pollfd fds[2] = { { .fd = u->event_fd, .events = POLLIN },
                             { .fd = wake_fd, .events = POLLIN } };
    struct timespec bound = { timeout_us / 1000000, timeout_us % 1000000 * 1000 };
    bool armed;

    /* arming fails while events are pending: then there is no need to sleep */
    pthread_mutex_lock(&t->lock);
    armed = ucp_worker_arm(u->worker) == UCS_OK;
    pthread_mutex_unlock(&t->lock);
    if (armed) ppoll(fds, 2, &bound, NULL);
}

/* ---- ending ---- */
/* UCX cannot take back what a peer may be about to fetch (a rendezvous): all messages that
 * are given up share one bound, after which they are left to UCX. */
static void ucx_cancel(struct transport *t, struct transfer *transfer)
{
    struct ucx *u = (struct ucx *)t;

    if (u->cancel_by == 0) u->cancel_by = clock_s() + CANCEL_BOUND_S;
    ucp_request_cancel(u->worker, transfer->request);
    while (transfer->state == TRANSFER_ACTIVE && clock_s() < u->cancel_by)
        if (!ucx_progress(t)) ucx_wait(t, -1, 1000);
    if (transfer->state != TRANSFER_ACTIVE || u->stuck) return;
    u->stuck = true;
    log_write(LOG_WARN, "a message with rank %d could not be taken back", transfer->peer);
}

/* Begin to close; `closing` is NULL where that was all. */
static void close_endpoint(struct endpoint *endpoint, bool broken)
{
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
        .flags = broken || endpoint->failure != UCS_OK ? UCP_EP_CLOSE_FLAG_FORCE : 0,
    };
    ucs_status_ptr_t request;

    if (endpoint->ep == NULL) return;
    request = ucp_ep_close_nbx(endpoint->ep, &param);
    endpoint->closing = UCS_PTR_IS_PTR(request) ? request : NULL;
}

static void finish_closing(struct ucx *u, double begin, struct endpoint *endpoint)
{
    if (endpoint->closing == NULL) return;
    while (ucp_request_check_status(endpoint->closing) == UCS_INPROGRESS &&
           clock_s() - begin < CLOSE_BOUND_S)
        if (!ucx_progress(&u->base)) ucx_wait(&u->base, -1, 10000);
    ucp_request_free(endpoint->closing);
    endpoint->closing = NULL;
}

static strait_status ucx_close(struct transport *t, bool broken)
{
    struct ucx *u = (struct ucx *)t;
    const struct cluster *c = t->cluster;
    double begin;
    strait_status st = STRAIT_OK;

    /* nobody lets go of an endpoint that a peer still sends through */
    if (!broken) st = cluster_barrier(c, "closing the transport");
    /* all at once: closing one after the other, each rank would wait for peers that wait for
     * others, up to the bound of each */
    begin = clock_s();
    for (int peer = 0; u->endpoints != NULL && peer < c->size; peer++)
        close_endpoint(&u->endpoints[peer], broken || st != STRAIT_OK);
    for (int peer = 0; u->endpoints != NULL && peer < c->size; peer++)
        finish_closing(u, begin, &u->endpoints[peer]);
    if (!broken && st == STRAIT_OK) st = cluster_barrier(c, "the transport's end");
    if (u->worker != NULL) ucp_worker_destroy(u->worker);
    if (u->context != NULL) ucp_cleanup(u->context);
    free(u->endpoints);
    free(u);
    return st;
}

/* UCX 1.13, which Debian 12 has, tells an endpoint's lanes only in print: lines such as
 * `lane[0]:  3:sysv/memory.0 md[2] ...`. Keep `sysv/memory`. */
static void ucx_describe(struct transport *t, int peer, struct text *out)
{
    struct ucx *u = (struct ucx *)t;
    char *print = NULL, *rest = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&print, &size);

    if (stream == NULL) return;
    ucp_ep_print_info(u->endpoints[peer].ep, stream);
    fclose(stream);
    for (char *line = strtok_r(print, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        char lane[64];

        if (strstr(line, "lane[") == NULL || strstr(line, "]:") == NULL) continue;
        if (sscanf(strstr(line, "]:") + 2, " %*d:%63[^. ]", lane) != 1) continue;
        if (strstr(text_string(out), lane) == NULL)
            text_add(out, "%s%s", out->length > 0 ? " + " : "", lane);
    }
    free(print);
}

const struct transport_ops transport_ucx = {
    .name = "ucx", .uses_mpi = false, .open = ucx_open, .send = ucx_send,
    .recv = ucx_recv, .progress = ucx_progress, .wait = ucx_wait, .cancel = ucx_cancel,
    .describe = ucx_describe, .close = ucx_close,
};
