/* Sealed packets by options, and counters: endpoints with the same secret communicate, one with another
 * secret does not. */
#include <apus.h>

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void check(apus_status status, const apus_error *error, const char *what)
{
    if (status != APUS_STATUS_OK) {
        fprintf(stderr, "%s: %s (%s)\n", what, error->text, apus_status_name(status));
        exit(1);
    }
}

/* Writes a secret that only this user can read. Returns the options that name it, which the caller
 * frees. */
static char *options_with_secret(char letter)
{
    static const char format[] = "[security]\nmode = 'secret'\nsecret = '%s'\n";
    char path[] = "/tmp/apus-secret-XXXXXX", secret[32];
    char *options = malloc(sizeof format + sizeof path);
    int file = mkstemp(path);
    memset(secret, letter, sizeof secret);
    if (options == NULL || file < 0 || write(file, secret, sizeof secret) != (ssize_t)sizeof secret) {
        perror("secret");
        exit(1);
    }
    close(file);
    snprintf(options, sizeof format + sizeof path, format, path);
    return options;
}

/* Removes the file that the options name, and frees them. */
static void forget(char *options)
{
    char *path = strstr(options, "/tmp/");
    *strchr(path, '\'') = '\0';
    unlink(path);
    free(options);
}

static void *serve(void *argument)
{
    apus_endpoint *server = argument;
    apus_request *request;
    size_t count;
    while (apus_recv_requests(server, &request, 1, -1, &count, NULL) == APUS_STATUS_OK)
        apus_reply(request, "sealed", 6, NULL);
    return NULL;
}

int main(void)
{
    char *options = options_with_secret('a'), *others = options_with_secret('b');
    apus_endpoint *server, *client, *stranger;
    apus_call_options limit = { .timeout_ns = 60000000000 };
    apus_address address;
    apus_buffer response = { 0 }, lines = { 0 };
    apus_error error;
    uint64_t responses;
    pthread_t thread;

    check(apus_endpoint_bind("127.0.0.1:0", options, 0, &server, &error), &error, "bind");
    check(apus_endpoint_client(options, 0, &client, &error), &error, "client");
    check(apus_endpoint_client(others, 0, &stranger, &error), &error, "stranger");
    apus_endpoint_address(server, &address);
    pthread_create(&thread, NULL, serve, server);

    check(apus_call(client, &address, "x", 1, &limit, &response, &error), &error, "call");
    printf("%.*s\n", (int)response.length, (const char *)response.data);
    apus_buffer_free(&response);

    apus_status refused = apus_call(stranger, &address, "x", 1, &limit, &response, &error);
    printf("%s, %s\n", apus_status_name(refused),
           error.execution == APUS_EXECUTION_NOT_EXECUTED ? "not executed" : "perhaps executed");

    check(apus_endpoint_metric(client, "client_responses_done", &responses, &error), &error, "metric");
    printf("%" PRIu64 " response\n", responses);
    check(apus_endpoint_metrics(client, &lines, &error), &error, "metrics");
    char *text = malloc(lines.length + 1);
    memcpy(text, lines.data, lines.length);
    text[lines.length] = '\0';
    puts(strstr(text, "\nclient_responses_done 1\n") ? "in the list" : text);
    free(text);
    apus_buffer_free(&lines);
    printf("%s\n", apus_status_name(apus_endpoint_metric(client, "no_such_counter", &responses, &error)));

    apus_endpoint_shutdown(server);
    pthread_join(thread, NULL);
    apus_endpoint_free(stranger);
    apus_endpoint_free(client);
    apus_endpoint_free(server);
    forget(options);
    forget(others);
    return 0;
}
