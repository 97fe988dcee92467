// UCX: one worker and one endpoint on each side, tagged messages.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucp/api/ucp.h>

// Progress calls without a message after which a side that polls returns.
#define POLLS 1000
// Longest sleep of a side that does not poll, in milliseconds.
#define CYCLE 50

#define NOTHING (-1)
#define FAILED (-2)

struct side {
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_ep_h endpoint;
    int event;
    // The message that is being received.
    void *buffer;
    size_t capacity;
    int is_receiving;
    ptrdiff_t received;
};

// Opens a worker that uses these transports.
static struct side *open_side(const char *transports, size_t capacity) {
    struct side *side = calloc(1, sizeof *side);
    side->buffer = malloc(capacity);
    side->capacity = capacity;
    side->received = NOTHING;
    ucp_config_t *config;
    if (ucp_config_read(NULL, NULL, &config) != UCS_OK ||
        ucp_config_modify(config, "TLS", transports) != UCS_OK) {
        return NULL;
    }
    ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES,
                           .features = UCP_FEATURE_TAG | UCP_FEATURE_WAKEUP};
    ucs_status_t status = ucp_init(&params, config, &side->context);
    ucp_config_release(config);
    ucp_worker_params_t worker = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                  .thread_mode = UCS_THREAD_MODE_SINGLE};
    if (status != UCS_OK || ucp_worker_create(side->context, &worker, &side->worker) != UCS_OK ||
        ucp_worker_get_efd(side->worker, &side->event) != UCS_OK) {
        return NULL;
    }
    return side;
}

static void on_connection(ucp_conn_request_h request, void *argument) {
    struct side *side = argument;
    ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST,
                              .conn_request = request};
    ucp_ep_create(side->worker, &params, &side->endpoint);
}

static struct sockaddr_in loopback(uint16_t port) {
    return (struct sockaddr_in){
        .sin_family = AF_INET,
        .sin_port = htons(port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
}

// A server at this port; null if it cannot be opened.
struct side *side_listen(const char *transports, size_t capacity, uint16_t port) {
    struct side *side = open_side(transports, capacity);
    struct sockaddr_in address = loopback(port);
    ucp_listener_params_t params = {
        .field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER,
        .sockaddr = {.addr = (struct sockaddr *)&address, .addrlen = sizeof address},
        .conn_handler = {.cb = on_connection, .arg = side},
    };
    ucp_listener_h listener;
    if (!side || ucp_listener_create(side->worker, &params, &listener) != UCS_OK) return NULL;
    return side;
}

// A client of the server at this port; null if it cannot be opened.
struct side *side_connect(const char *transports, size_t capacity, uint16_t port) {
    struct side *side = open_side(transports, capacity);
    struct sockaddr_in address = loopback(port);
    ucp_ep_params_t params = {
        .field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR,
        .flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER,
        .sockaddr = {.addr = (struct sockaddr *)&address, .addrlen = sizeof address},
    };
    if (!side || ucp_ep_create(side->worker, &params, &side->endpoint) != UCS_OK) return NULL;
    return side;
}

static void on_sent(void *request, ucs_status_t status, void *copy) {
    (void)status;
    free(copy);
    ucp_request_free(request);
}

// Sends a copy of a message. Returns 0, or FAILED.
int side_send(struct side *side, const void *message, size_t length) {
    void *copy = malloc(length);
    memcpy(copy, message, length);
    ucp_request_param_t params = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
        .cb.send = on_sent,
        .user_data = copy,
    };
    void *request = ucp_tag_send_nbx(side->endpoint, copy, length, 0, &params);
    if (!UCS_PTR_IS_PTR(request)) free(copy);
    return UCS_PTR_IS_ERR(request) ? FAILED : 0;
}

static void on_received(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info,
                        void *argument) {
    struct side *side = argument;
    side->received = status == UCS_OK ? (ptrdiff_t)info->length : FAILED;
    side->is_receiving = 0;
    ucp_request_free(request);
}

// Waits for a message a while, which is `*message` until the next call. Returns its length, NOTHING, or FAILED.
ptrdiff_t side_receive(struct side *side, int is_spinning, const void **message) {
    *message = side->buffer;
    side->received = NOTHING;
    if (!side->is_receiving) {
        // The callback is called in any case, possibly at once.
        ucp_request_param_t params = {
            .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                            UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
            .cb.recv = on_received,
            .user_data = side,
        };
        side->is_receiving = 1;
        void *request = ucp_tag_recv_nbx(side->worker, side->buffer, side->capacity, 0, 0, &params);
        if (UCS_PTR_IS_ERR(request)) return FAILED;
    }
    for (int polls = 0; side->received == NOTHING; polls++) {
        if (ucp_worker_progress(side->worker)) continue;
        if (is_spinning) {
            if (polls >= POLLS) break;
        } else if (ucp_worker_arm(side->worker) == UCS_OK) {
            struct pollfd event = {.fd = side->event, .events = POLLIN};
            if (poll(&event, 1, CYCLE) == 0) break;
        }
    }
    return side->received;
}
