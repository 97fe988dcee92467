#include <apus.h>

#include <ctype.h>
#include <stdio.h>

/* Answers each request with its bytes in upper case. */
int main(int argc, char **argv)
{
    const char *at = argc > 1 ? argv[1] : "127.0.0.1:4000";
    apus_endpoint *server;
    apus_address address;
    apus_request *request;
    apus_error error;
    size_t count;
    char text[64];

    if (apus_endpoint_bind(at, NULL, 0, &server, &error) != APUS_STATUS_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    apus_endpoint_address(server, &address);
    apus_address_format(&address, text, sizeof text);
    printf("%s\n", text);
    fflush(stdout);

    /* -1: no limit. The function returns when a request arrives or the endpoint is closed. */
    while (apus_recv_requests(server, &request, 1, -1, &count, &error) == APUS_STATUS_OK) {
        size_t length;
        const uint8_t *payload = apus_request_payload(request, &length);
        if (length > sizeof text)
            length = sizeof text;
        for (size_t i = 0; i < length; i++)
            text[i] = (char)toupper(payload[i]);
        /* Frees the request. Fails if the client has gone, which is not the server's fault. */
        apus_reply(request, text, length, NULL);
    }
    fprintf(stderr, "%s\n", error.text);
    apus_endpoint_free(server);
    return 1;
}
