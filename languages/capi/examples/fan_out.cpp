// One request to several servers from C++: the first answers count, the other calls are cancelled.
//
//     cargo build --release -p apus-capi
//     c++ -std=c++17 -I languages/capi/include languages/capi/examples/fan_out.cpp target/release/libapus_capi.a -lpthread -ldl -lm -o fan_out
//     ./fan_out
#include <apus.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

// The failure of a function as an exception.
struct Error : std::runtime_error {
    explicit Error(const apus_error &error)
        : std::runtime_error(error.text), status(error.status), execution(error.execution) {}
    apus_status status;
    apus_execution execution;
};

// An endpoint that is shut down and freed with its last owner.
class Endpoint {
  public:
    static Endpoint bind(const char *address) {
        apus_endpoint *endpoint;
        apus_error error;
        if (apus_endpoint_bind(address, nullptr, 0, &endpoint, &error) != APUS_STATUS_OK)
            throw Error(error);
        return Endpoint(endpoint);
    }

    static Endpoint client() {
        apus_endpoint *endpoint;
        apus_error error;
        if (apus_endpoint_client(nullptr, 0, &endpoint, &error) != APUS_STATUS_OK)
            throw Error(error);
        return Endpoint(endpoint);
    }

    apus_address address() const {
        apus_address address;
        apus_endpoint_address(get(), &address);
        return address;
    }

    apus_endpoint *get() const { return endpoint_.get(); }

  private:
    explicit Endpoint(apus_endpoint *endpoint) : endpoint_(endpoint, apus_endpoint_free) {}
    std::unique_ptr<apus_endpoint, void (*)(apus_endpoint *)> endpoint_;
};

// Answers each request with a name. A server with an empty name never answers.
static void serve(const Endpoint &server, const std::string &name) {
    std::vector<apus_request *> unanswered;
    std::array<apus_request *, 16> requests;
    std::size_t count;
    while (apus_recv_requests(server.get(), requests.data(), requests.size(), -1, &count, nullptr) == APUS_STATUS_OK) {
        for (std::size_t i = 0; i < count; i++) {
            if (name.empty())
                unanswered.push_back(requests[i]);
            else
                apus_reply(requests[i], name.data(), name.size(), nullptr);
        }
    }
    for (apus_request *request : unanswered)
        apus_request_free(request);
}

int main() try {
    const std::array<std::string, 3> names{"first", "", "third"};
    std::vector<Endpoint> servers;
    for (std::size_t i = 0; i < names.size(); i++)
        servers.push_back(Endpoint::bind("127.0.0.1:0"));
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < names.size(); i++)
        threads.emplace_back([&servers, &names, i] { serve(servers[i], names[i]); });

    Endpoint client = Endpoint::client();
    std::array<std::uint64_t, 3> calls{};
    apus_error error;
    for (std::size_t i = 0; i < names.size(); i++) {
        apus_address to = servers[i].address();
        if (apus_send(client.get(), &to, "who?", 4, nullptr, i, &calls[i], &error) != APUS_STATUS_OK)
            throw Error(error);
    }
    std::size_t answers = 0;
    while (answers < 2) {
        std::array<apus_completion, 4> completions;
        std::size_t count;
        if (apus_recv_completions(client.get(), completions.data(), completions.size(), -1, &count, &error) != APUS_STATUS_OK)
            throw Error(error);
        for (std::size_t i = 0; i < count; i++) {
            apus_completion &completion = completions[i];
            if (completion.error.status != APUS_STATUS_OK)
                throw Error(completion.error);
            calls[completion.cookie] = 0;
            answers++;
            apus_buffer_free(&completion.response);
        }
    }
    int cancelled = 0;
    for (std::uint64_t call : calls)
        cancelled += apus_cancel(client.get(), call);
    std::printf("%zu answers, %d call cancelled\n", answers, cancelled);

    for (Endpoint &server : servers)
        apus_endpoint_shutdown(server.get());
    for (std::thread &thread : threads)
        thread.join();
    return 0;
} catch (const Error &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
