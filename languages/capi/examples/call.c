#include <apus.h>

#include <stdio.h>

int main(int argc, char **argv)
{
    const char *to = argc > 1 ? argv[1] : "127.0.0.1:4000";
    /* 0 selects the endpoint's timeout, a minute by default; a negative number means no limit. */
    apus_call_options options = { .timeout_ns = INT64_C(5000000000) };
    apus_endpoint *client;
    apus_address server;
    apus_buffer response;
    apus_error error;
    int failed;

    if (apus_endpoint_client(NULL, 0, &client, &error) != APUS_STATUS_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    failed = apus_address_parse(to, &server, &error) != APUS_STATUS_OK
        || apus_call(client, &server, "hello", 5, &options, &response, &error) != APUS_STATUS_OK;
    if (failed) {
        fprintf(stderr, "%s\n", error.text);
        if (error.execution == APUS_EXECUTION_NOT_EXECUTED)
            fprintf(stderr, "it is safe to call another server\n");
    } else {
        fwrite(response.data, 1, response.length, stdout);
        putchar('\n');
        apus_buffer_free(&response);
    }
    apus_endpoint_free(client);
    return failed;
}
