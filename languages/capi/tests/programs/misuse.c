/* Every function with null pointers and invalid arguments: an error and no crash. */
#include <apus.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;

#define EXPECT(condition)                                                     \
    do {                                                                      \
        if (!(condition)) {                                                   \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition);           \
            failures++;                                                       \
        }                                                                     \
    } while (0)

#define INVALID(call, argument)                                               \
    do {                                                                      \
        memset(&error, 0x55, sizeof error);                                   \
        EXPECT((call) == APUS_STATUS_INVALID_ARGUMENT);                       \
        EXPECT(error.status == APUS_STATUS_INVALID_ARGUMENT);                 \
        EXPECT(strstr(error.text, argument) != NULL);                         \
    } while (0)

int main(void)
{
    apus_error error;
    apus_endpoint *server = NULL, *client = NULL, *none = NULL;
    apus_address address, wrong = { .version = 5 };
    apus_buffer buffer = { 0 };
    apus_completion completions[2];
    apus_request *requests[2];
    apus_call_options unknown = { .flags = 0x80 }, late = { .timeout_ns = 1 };
    size_t count = 77;
    uint64_t number = 0;
    char text[8], name[64];

    EXPECT(strcmp(apus_version(), "0.1.0") == 0);
    EXPECT(strcmp(apus_status_name(APUS_STATUS_NO_ROOM), "no_room") == 0);
    EXPECT(strcmp(apus_status_name(12345), "unknown") == 0);

    INVALID(apus_endpoint_bind(NULL, NULL, 0, &none, &error), "address");
    INVALID(apus_endpoint_bind("127.0.0.1:0", NULL, 0, NULL, &error), "endpoint");
    INVALID(apus_endpoint_bind("\xff\xfe:1", NULL, 0, &none, &error), "address");
    INVALID(apus_endpoint_client(NULL, 0xf0, &none, &error), "flags");
    EXPECT(apus_endpoint_bind("no address", NULL, 0, &none, &error) == APUS_STATUS_ADDRESS_UNRESOLVED);
    EXPECT(apus_endpoint_client("poll = 'never'", 0, &none, &error) == APUS_STATUS_INVALID_OPTIONS);
    EXPECT(strstr(error.text, "hybrid=MICROSECONDS") != NULL);
    EXPECT(apus_endpoint_client("such = 'key'", 0, &none, NULL) == APUS_STATUS_INVALID_OPTIONS);
    EXPECT(none == NULL);

    EXPECT(apus_endpoint_bind("127.0.0.1:0", NULL, 0, &server, NULL) == APUS_STATUS_OK);
    EXPECT(apus_endpoint_client(NULL, 0, &client, NULL) == APUS_STATUS_OK);
    EXPECT(apus_endpoint_address(server, &address) == APUS_STATUS_OK);
    EXPECT(address.version == 4 && address.ip[0] == 127 && address.port != 0);
    EXPECT(apus_endpoint_metric(NULL, "calls", NULL, NULL) == APUS_STATUS_INVALID_ARGUMENT);
    INVALID(apus_endpoint_metric(server, NULL, &number, &error), "name");
    INVALID(apus_endpoint_metric(server, "wakeups", NULL, &error), "value");
    INVALID(apus_endpoint_metric(server, "none", &number, &error), "metrics.md");
    INVALID(apus_endpoint_metrics(server, NULL, &error), "lines");
    INVALID(apus_endpoint_metrics(NULL, &buffer, &error), "endpoint");
    EXPECT(apus_endpoint_address(NULL, &address) == APUS_STATUS_INVALID_ARGUMENT);
    EXPECT(apus_endpoint_address(server, NULL) == APUS_STATUS_INVALID_ARGUMENT);
    EXPECT(apus_endpoint_completion_descriptor(client, &error) == -1);
    EXPECT(error.status == APUS_STATUS_NO_DESCRIPTORS);
    EXPECT(apus_endpoint_request_descriptor(NULL, NULL) == -1);
    EXPECT(apus_endpoint_shutdown(NULL) == APUS_STATUS_INVALID_ARGUMENT);
    EXPECT(apus_endpoint_drain(NULL, 0) == APUS_STATUS_INVALID_ARGUMENT);

    INVALID(apus_address_parse(NULL, &wrong, &error), "address");
    INVALID(apus_address_parse("127.0.0.1:1", NULL, &error), "result");
    EXPECT(apus_address_parse("127.0.0.1", &wrong, &error) == APUS_STATUS_ADDRESS_UNRESOLVED);
    EXPECT(wrong.version == 5);
    EXPECT(apus_address_format(&address, text, sizeof text) == APUS_STATUS_INVALID_ARGUMENT);
    EXPECT(apus_address_format(&address, NULL, 64) == APUS_STATUS_INVALID_ARGUMENT);
    EXPECT(apus_address_format(NULL, name, 64) == APUS_STATUS_INVALID_ARGUMENT);
    EXPECT(apus_address_format(&wrong, name, 64) == APUS_STATUS_INVALID_ARGUMENT);
    EXPECT(apus_address_format(&address, name, 64) == APUS_STATUS_OK);
    EXPECT(strncmp(name, "127.0.0.1:", 10) == 0);

    INVALID(apus_call(NULL, &address, "x", 1, NULL, &buffer, &error), "endpoint");
    INVALID(apus_call(client, NULL, "x", 1, NULL, &buffer, &error), "to");
    INVALID(apus_call(client, &wrong, "x", 1, NULL, &buffer, &error), "address");
    INVALID(apus_call(client, &address, NULL, 1, NULL, &buffer, &error), "request");
    INVALID(apus_call(client, &address, "x", (size_t)-1, NULL, &buffer, &error), "request");
    INVALID(apus_call(client, &address, "x", 1, &unknown, &buffer, &error), "flag");
    INVALID(apus_call(client, &address, "x", 1, NULL, NULL, &error), "response");
    INVALID(apus_send(NULL, &address, "x", 1, NULL, 0, NULL, &error), "endpoint");
    INVALID(apus_send(client, NULL, "x", 1, NULL, 0, NULL, &error), "to");
    EXPECT(buffer.data == NULL);
    EXPECT(!apus_cancel(NULL, 1));
    EXPECT(!apus_cancel(client, 0));
    EXPECT(!apus_cancel(client, 1));
    EXPECT(!apus_cancel(client, UINT64_MAX));

    INVALID(apus_recv_completions(NULL, completions, 2, 0, &count, &error), "endpoint");
    INVALID(apus_recv_completions(client, NULL, 2, 0, &count, &error), "completions");
    INVALID(apus_recv_completions(client, completions, 2, 0, NULL, &error), "count");
    INVALID(apus_recv_requests(NULL, requests, 2, 0, &count, &error), "endpoint");
    INVALID(apus_recv_requests(server, NULL, 2, 0, &count, &error), "requests");
    INVALID(apus_recv_requests(server, requests, 2, 0, NULL, &error), "count");
    EXPECT(count == 77);
    EXPECT(apus_recv_completions(client, NULL, 0, -1, &count, NULL) == APUS_STATUS_OK && count == 0);
    EXPECT(apus_recv_requests(server, requests, 2, 1000, &count, NULL) == APUS_STATUS_OK && count == 0);

    INVALID(apus_reply(NULL, "x", 1, &error), "request");
    EXPECT(apus_request_payload(NULL, &count) == NULL && count == 0);
    EXPECT(apus_request_payload(NULL, NULL) == NULL);
    EXPECT(apus_request_address(NULL, &address) == APUS_STATUS_INVALID_ARGUMENT);

    /* A nanosecond has passed before the request could be sent: the loop below gets none of it. */
    EXPECT(apus_call(client, &address, "late", 4, &late, &buffer, &error) == APUS_STATUS_DEADLINE_EXCEEDED);
    EXPECT(error.execution == APUS_EXECUTION_NOT_EXECUTED);
    EXPECT(apus_send(client, &address, "late", 4, &late, 6, NULL, &error) == APUS_STATUS_DEADLINE_EXCEEDED);
    EXPECT(error.execution == APUS_EXECUTION_NOT_EXECUTED);

    /* An empty message, which needs no pointer, and a reply from the request's own bytes. */
    for (int round = 0; round < 2; round++) {
        const char *message = round == 0 ? NULL : "hello";
        size_t length = round == 0 ? 0 : 5;
        EXPECT(apus_send(client, &address, message, length, NULL, 7, NULL, NULL) == APUS_STATUS_OK);
        EXPECT(apus_recv_requests(server, requests, 1, -1, &count, NULL) == APUS_STATUS_OK && count == 1);
        apus_address from;
        EXPECT(apus_request_address(requests[0], &from) == APUS_STATUS_OK && from.version == 4);
        EXPECT(apus_request_address(requests[0], NULL) == APUS_STATUS_INVALID_ARGUMENT);
        const uint8_t *payload = apus_request_payload(requests[0], &count);
        EXPECT(payload != NULL && count == length);
        EXPECT(apus_reply(requests[0], payload, count, NULL) == APUS_STATUS_OK);
        EXPECT(apus_recv_completions(client, completions, 2, -1, &count, NULL) == APUS_STATUS_OK && count == 1);
        EXPECT(completions[0].cookie == 7 && completions[0].error.status == APUS_STATUS_OK);
        EXPECT(completions[0].response.length == length && completions[0].response.data != NULL);
        apus_buffer_free(&completions[0].response);
        EXPECT(completions[0].response.data == NULL);
        apus_buffer_free(&completions[0].response);
    }

    /* A reply that fails takes the request all the same: the client is notified. */
    EXPECT(apus_send(client, &address, "x", 1, NULL, 8, NULL, NULL) == APUS_STATUS_OK);
    EXPECT(apus_recv_requests(server, requests, 1, -1, &count, NULL) == APUS_STATUS_OK && count == 1);
    INVALID(apus_reply(requests[0], NULL, 1, &error), "response");
    EXPECT(apus_recv_completions(client, completions, 2, -1, &count, NULL) == APUS_STATUS_OK && count == 1);
    EXPECT(completions[0].error.status == APUS_STATUS_ABANDONED);
    EXPECT(completions[0].response.data == NULL);

    /* A request outlives its endpoint. */
    uint64_t call;
    EXPECT(apus_send(client, &address, "x", 1, NULL, 9, &call, NULL) == APUS_STATUS_OK && call != 0);
    EXPECT(apus_recv_requests(server, requests, 1, -1, &count, NULL) == APUS_STATUS_OK && count == 1);
    apus_endpoint_free(server);
    EXPECT(apus_request_payload(requests[0], &count) != NULL && count == 1);
    EXPECT(apus_reply(requests[0], "y", 1, &error) == APUS_STATUS_CLOSED);

    EXPECT(apus_endpoint_shutdown(client) == APUS_STATUS_OK);
    EXPECT(apus_call(client, &address, "x", 1, NULL, &buffer, &error) == APUS_STATUS_CLOSED);
    EXPECT(error.execution == APUS_EXECUTION_NOT_EXECUTED);
    apus_endpoint_free(client);

    apus_endpoint_free(NULL);
    apus_request_free(NULL);
    apus_buffer_free(NULL);
    printf("%d failures\n", failures);
    return failures != 0;
}
