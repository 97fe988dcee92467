// UCX: one worker on each side, an endpoint for each connection, active messages.
#define _GNU_SOURCE
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucp/api/ucp.h>

// Number of fruitless progress calls before a polling side returns.
#define POLLS 1000
// The kind of the active messages.
#define ID 0
// An operation has a callback, and an argument for it.
#define CALLBACK (UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA)

// A message that was received or is being sent.
struct message {
    struct message *next;
    struct side *side;
    ucp_ep_h from;
    size_t length;
    uint64_t call; // The header of the active message.
    char bytes[];
};

struct side {
    ucp_worker_h worker;
    int event;
    struct message *first, **last; // Messages that have arrived.
};

// A message has arrived, if it has.
static void on_end(ucs_status_t status, struct message *message) {
    if (status == UCS_OK) {
        *message->side->last = message;
        message->side->last = &message->next;
    } else free(message);
}

static void on_data(void *request, ucs_status_t status, size_t length, void *message) {
    (void)length;
    ucp_request_free(request);
    on_end(status, message);
}

// A short message has arrived, or a long one is announced.
static ucs_status_t on_message(void *argument, const void *header, size_t header_length, void *data,
                               size_t length, const ucp_am_recv_param_t *about) {
    struct message *message = malloc(sizeof *message + length);
    *message = (struct message){.side = argument, .from = about->reply_ep, .length = length};
    memcpy(&message->call, header, header_length);
    if (!(about->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV)) {
        memcpy(message->bytes, data, length);
        on_end(UCS_OK, message);
        return UCS_OK;
    }
    ucp_request_param_t params = {
        .op_attr_mask = CALLBACK, .cb.recv_am = on_data, .user_data = message};
    ucp_worker_h worker = message->side->worker;
    void *request = ucp_am_recv_data_nbx(worker, data, message->bytes, length, &params);
    if (!UCS_PTR_IS_PTR(request)) on_end(UCS_PTR_STATUS(request), message);
    return UCS_INPROGRESS;
}

// Opens a side that uses these transports; null if that fails.
struct side *side_open(const char *transports) {
    struct side *side = calloc(1, sizeof *side);
    side->last = &side->first;
    ucp_config_t *config;
    ucp_context_h context;
    if (ucp_config_read(NULL, NULL, &config) != UCS_OK) return NULL;
    ucp_params_t params = {UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP};
    ucp_worker_params_t worker = {UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                  .thread_mode = UCS_THREAD_MODE_SINGLE};
    ucp_am_handler_param_t handler = {
        .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                      UCP_AM_HANDLER_PARAM_FIELD_ARG,
        .id = ID, .cb = on_message, .arg = side};
    int is_open = ucp_config_modify(config, "TLS", transports) == UCS_OK &&
                  ucp_init(&params, config, &context) == UCS_OK &&
                  ucp_worker_create(context, &worker, &side->worker) == UCS_OK &&
                  ucp_worker_get_efd(side->worker, &side->event) == UCS_OK &&
                  ucp_worker_set_am_recv_handler(side->worker, &handler) == UCS_OK;
    ucp_config_release(config);
    return is_open ? side : NULL;
}

static void on_connection(ucp_conn_request_h request, void *argument) {
    struct side *side = argument;
    ucp_ep_params_t params = {UCP_EP_PARAM_FIELD_CONN_REQUEST, .conn_request = request};
    ucp_ep_h endpoint;
    ucp_ep_create(side->worker, &params, &endpoint);
}

// Accepts connections of clients at this address.
int side_listen(struct side *side, const struct sockaddr_in *at) {
    ucp_listener_params_t params = {
        .field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER,
        .sockaddr = {.addr = (const struct sockaddr *)at, .addrlen = sizeof *at},
        .conn_handler = {.cb = on_connection, .arg = side}};
    ucp_listener_h listener;
    return ucp_listener_create(side->worker, &params, &listener);
}

// Connects to the server at this address; null if that fails.
ucp_ep_h side_connect(struct side *side, const struct sockaddr_in *at) {
    ucp_ep_params_t params = {
        .field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR,
        .flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER,
        .sockaddr = {.addr = (const struct sockaddr *)at, .addrlen = sizeof *at}};
    ucp_ep_h endpoint;
    return ucp_ep_create(side->worker, &params, &endpoint) == UCS_OK ? endpoint : NULL;
}

static void on_sent(void *request, ucs_status_t status, void *message) {
    (void)status;
    free(message);
    ucp_request_free(request);
}

// Sends a copy of a message; the other side can reply to it.
int endpoint_send(ucp_ep_h endpoint, uint64_t call, const void *bytes, size_t length) {
    struct message *message = malloc(sizeof *message + length);
    message->call = call;
    memcpy(message->bytes, bytes, length);
    ucp_request_param_t params = {
        .op_attr_mask = CALLBACK | UCP_OP_ATTR_FIELD_FLAGS,
        .flags = UCP_AM_SEND_FLAG_REPLY, .cb.send = on_sent, .user_data = message};
    void *request = ucp_am_send_nbx(endpoint, ID, &message->call, sizeof message->call,
                                    message->bytes, length, &params);
    if (!UCS_PTR_IS_PTR(request)) free(message);
    return UCS_PTR_IS_ERR(request) ? UCS_PTR_STATUS(request) : UCS_OK;
}

// Returns the next message; the caller must free it. Waits for up to `micros`; null on timeout.
struct message *side_receive(struct side *side, int is_spinning, uint32_t micros) {
    for (int polls = 0; !side->first && polls < POLLS; polls++) {
        if (ucp_worker_progress(side->worker)) continue;
        if (micros == 0) break;
        // A worker cannot be armed while a message waits to be sent, and never again once its
        // client has ended.
        if (is_spinning || ucp_worker_arm(side->worker) != UCS_OK) continue;
        struct pollfd event = {.fd = side->event, .events = POLLIN};
        struct timespec time = {.tv_sec = micros / 1000000, .tv_nsec = micros % 1000000 * 1000L};
        if (ppoll(&event, 1, &time, NULL) == 0) break;
    }
    struct message *message = side->first;
    if (message && !(side->first = message->next)) side->last = &side->first;
    return message;
}
