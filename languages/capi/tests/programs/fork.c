/* Children of a fork: they call, reply, free and exit, with the endpoints of their parent and with
 * their own. */
#include <apus.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* A child does not have the threads that point to some of the memory. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}

static int failures;
static apus_endpoint *server, *client;
static apus_address to;

#define EXPECT(condition) expect((condition), #condition, __LINE__)

static void expect(int holds, const char *condition, int line)
{
    if (!holds) {
        fprintf(stderr, "line %d: %s\n", line, condition);
        failures++;
    }
}

static void *serve(void *argument)
{
    apus_endpoint *endpoint = argument;
    apus_request *request;
    size_t count, length;
    while (apus_recv_requests(endpoint, &request, 1, -1, &count, NULL) == APUS_STATUS_OK) {
        char copy[64];
        const uint8_t *payload = apus_request_payload(request, &length);
        memcpy(copy, payload, length < sizeof copy ? length : sizeof copy);
        apus_reply(request, copy, length, NULL);
    }
    return NULL;
}

/* Calls the server, and expects the same text back. */
static void call(apus_endpoint *endpoint, const char *text)
{
    apus_call_options limit = { .timeout_ns = 60000000000 };
    apus_buffer response = { 0 };
    apus_error error;
    apus_status status = apus_call(endpoint, &to, text, strlen(text), &limit, &response, &error);
    EXPECT(status == APUS_STATUS_OK);
    EXPECT(response.length == strlen(text) && memcmp(response.data, text, response.length) == 0);
    apus_buffer_free(&response);
}

/* What a child does with the endpoints of its parent. */
static void in_child(int number, apus_request *kept)
{
    apus_buffer response = { 0 };
    apus_error error;
    apus_request *request;
    size_t count;
    failures = 0;
    EXPECT(apus_call(client, &to, "child", 5, NULL, &response, &error) == APUS_STATUS_CLOSED);
    EXPECT(error.execution == APUS_EXECUTION_NOT_EXECUTED);
    EXPECT(strstr(error.text, "before a fork") != NULL);
    EXPECT(apus_recv_requests(server, &request, 1, -1, &count, &error) == APUS_STATUS_CLOSED);
    if (kept != NULL && number % 2 == 0)
        EXPECT(apus_reply(kept, "child", 5, &error) == APUS_STATUS_CLOSED);
    else
        apus_request_free(kept);
    if (number % 3 == 0)
        apus_endpoint_shutdown(client);
    if (number % 4 < 2) {
        apus_endpoint_free(client);
        apus_endpoint_free(server);
    }
    apus_endpoint *own;
    EXPECT(apus_endpoint_client(NULL, 0, &own, &error) == APUS_STATUS_OK);
    call(own, "an endpoint of the child");
    apus_endpoint_free(own);
}

/* Forks `children` times, and calls meanwhile. */
static void fork_and_call(const char *options, unsigned flags, int children)
{
    apus_error error;
    pthread_t thread;
    apus_endpoint *keeps;
    apus_request *kept = NULL;
    apus_address at;
    size_t count;
    EXPECT(apus_endpoint_bind("127.0.0.1:0", options, flags, &server, &error) == APUS_STATUS_OK);
    EXPECT(apus_endpoint_bind("127.0.0.1:0", options, 0, &keeps, &error) == APUS_STATUS_OK);
    EXPECT(apus_endpoint_client(options, flags, &client, &error) == APUS_STATUS_OK);
    apus_endpoint_address(server, &to);
    apus_endpoint_address(keeps, &at);
    pthread_create(&thread, NULL, serve, server);
    EXPECT(apus_send(client, &at, "kept", 4, NULL, 7, NULL, &error) == APUS_STATUS_OK);
    EXPECT(apus_recv_requests(keeps, &kept, 1, -1, &count, &error) == APUS_STATUS_OK);
    for (int number = 0; number < children; number++) {
        char text[32];
        int status = 0;
        pid_t child = fork();
        if (child == 0) {
            in_child(number, kept);
            if (number % 2 == 0)
                exit(failures);
            _exit(failures);
        }
        for (int calls = 0; calls < 10; calls++) {
            snprintf(text, sizeof text, "parent %d.%d", number, calls);
            call(client, text);
        }
        EXPECT(waitpid(child, &status, 0) == child && status == 0);
        call(client, "parent, after its child");
    }
    apus_completion completion;
    EXPECT(apus_reply(kept, "parent", 6, &error) == APUS_STATUS_OK);
    EXPECT(apus_recv_completions(client, &completion, 1, -1, &count, &error) == APUS_STATUS_OK);
    EXPECT(completion.error.status == APUS_STATUS_OK && completion.cookie == 7);
    apus_buffer_free(&completion.response);
    apus_endpoint_shutdown(server);
    pthread_join(thread, NULL);
    apus_endpoint_free(client);
    apus_endpoint_free(keeps);
    apus_endpoint_free(server);
}

int main(void)
{
    fork_and_call(NULL, 0, 12);
    fork_and_call("local = false", 0, 12);
    fork_and_call(NULL, APUS_DESCRIPTORS, 12);
    printf("%d failures\n", failures);
    return failures != 0;
}
