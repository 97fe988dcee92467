/* A server and its clients in C: calls that wait, and an event loop that polls descriptors.
 *
 *     cargo build --release -p apus-capi
 *     cc -I languages/capi/include languages/capi/examples/echo.c target/release/libapus_capi.a -lpthread -ldl -lm -o echo
 *     ./echo
 */
#include <apus.h>

#include <ctype.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends the program if a function failed. */
static void check(apus_status status, const apus_error *error, const char *what)
{
    if (status != APUS_STATUS_OK) {
        fprintf(stderr, "%s: %s (%s)\n", what, error->text, apus_status_name(status));
        exit(1);
    }
}

/* Serves requests in upper case until the endpoint is shut down. */
static void *serve(void *argument)
{
    apus_endpoint *server = argument;
    apus_request *requests[32];
    size_t count;

    while (apus_recv_requests(server, requests, 32, -1, &count, NULL) == APUS_STATUS_OK) {
        for (size_t i = 0; i < count; i++) {
            size_t length;
            const uint8_t *payload = apus_request_payload(requests[i], &length);
            char text[64];
            if (length > sizeof text)
                length = sizeof text;
            for (size_t at = 0; at < length; at++)
                text[at] = (char)toupper(payload[at]);
            /* Fails if the client has ended in the meantime, which is not the server's fault. */
            apus_reply(requests[i], text, length, NULL);
        }
    }
    return NULL;
}

/* Sends `calls` requests, and receives their completions in an event loop. Returns the number of
 * responses. */
static int event_loop(apus_endpoint *client, const apus_address *server, int calls)
{
    apus_error error;
    int descriptor = apus_endpoint_completion_descriptor(client, &error);
    if (descriptor < 0)
        check(error.status, &error, "descriptor");
    for (int i = 0; i < calls; i++) {
        char text[32];
        int length = snprintf(text, sizeof text, "number %d", i);
        check(apus_send(client, server, text, (size_t)length, NULL, (uint64_t)i, NULL, &error), &error, "send");
    }
    int ended = 0, responses = 0;
    while (ended < calls) {
        /* A real program polls its other descriptors here as well. */
        struct pollfd poller = { .fd = descriptor, .events = POLLIN };
        if (poll(&poller, 1, 60 * 1000) <= 0) {
            fprintf(stderr, "no completion within a minute\n");
            exit(1);
        }
        apus_completion completions[16];
        size_t count;
        check(apus_recv_completions(client, completions, 16, 0, &count, &error), &error, "receive");
        for (size_t i = 0; i < count; i++) {
            char expected[32];
            int length = snprintf(expected, sizeof expected, "NUMBER %" PRIu64, completions[i].cookie);
            apus_buffer *response = &completions[i].response;
            if (completions[i].error.status != APUS_STATUS_OK)
                fprintf(stderr, "call %" PRIu64 ": %s\n", completions[i].cookie, completions[i].error.text);
            else if (response->length == (size_t)length && memcmp(response->data, expected, response->length) == 0)
                responses++;
            apus_buffer_free(response);
        }
        ended += (int)count;
    }
    return responses;
}

int main(void)
{
    apus_error error;
    apus_endpoint *server, *client, *events;
    apus_address address;
    pthread_t thread;

    check(apus_endpoint_bind("127.0.0.1:0", NULL, 0, &server, &error), &error, "bind");
    check(apus_endpoint_address(server, &address), NULL, "address");
    if (pthread_create(&thread, NULL, serve, server) != 0)
        return 1;

    /* A call that waits. The thread polls the network itself, which is the fastest way. */
    check(apus_endpoint_client("poll = 'hybrid=50'", 0, &client, &error), &error, "client");
    apus_call_options options = { .timeout_ns = 10 * INT64_C(1000000000) };
    apus_buffer response = { 0 };
    check(apus_call(client, &address, "hello", 5, &options, &response, &error), &error, "call");
    printf("%.*s\n", (int)response.length, (const char *)response.data);
    apus_buffer_free(&response);

    /* An event loop. */
    check(apus_endpoint_client(NULL, APUS_DESCRIPTORS, &events, &error), &error, "client");
    printf("%d responses\n", event_loop(events, &address, 100));
    apus_endpoint_free(events);

    /* Errors state the reason, and whether the request may have been executed. */
    apus_endpoint_shutdown(server);
    pthread_join(thread, NULL);
    apus_endpoint_free(server);
    apus_status status = apus_call(client, &address, "anyone?", 7, &options, &response, &error);
    printf("%s\n", status == APUS_STATUS_OK ? "a response without a server" : "no server, no response");
    if (status != APUS_STATUS_OK && error.execution == APUS_EXECUTION_NOT_EXECUTED)
        printf("it is safe to call another server\n");
    apus_endpoint_free(client);
    return 0;
}
