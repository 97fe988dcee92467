// gRPC C++: unary calls through completion queues, one thread on each side.
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench.grpc.pb.h"

using bench::Data;
using bench::Echo;

// Defined in ffi.rs: writes the receipt requested by `request`, and returns its length; 0 if no
// receipt is requested.
extern "C" size_t compare_answer(const char* request, size_t length, char* receipt);

namespace {

// Number of requests that a server waits for concurrently.
constexpr int kWaiting = 64;
constexpr size_t kReceiptCapacity = 16;

// A call at a server: it waits for a request, answers it, and waits for the next one.
class Served {
 public:
  Served(Echo::AsyncService* service, grpc::ServerCompletionQueue* queue)
      : service_(service), queue_(queue), responder_(&context_) {
    service_->RequestCall(&context_, &request_, &responder_, queue_, queue_, this);
  }

  void Proceed() {
    if (is_answered_) {
      delete this;
      return;
    }
    is_answered_ = true;
    new Served(service_, queue_);
    std::string& bytes = *request_.mutable_bytes();
    char receipt[kReceiptCapacity];
    size_t length = compare_answer(bytes.data(), bytes.size(), receipt);
    if (length > 0) bytes.assign(receipt, length);
    Data reply;
    *reply.mutable_bytes() = std::move(bytes);
    responder_.Finish(reply, grpc::Status::OK, this);
  }

 private:
  Echo::AsyncService* service_;
  grpc::ServerCompletionQueue* queue_;
  grpc::ServerContext context_;
  Data request_;
  grpc::ServerAsyncResponseWriter<Data> responder_;
  bool is_answered_ = false;
};

// A call at a client.
struct Made {
  uint64_t call;
  grpc::ClientContext context;
  Data reply;
  grpc::Status status;
  std::unique_ptr<grpc::ClientAsyncResponseReader<Data>> reader;
};

}  // namespace

struct EchoServer {
  Echo::AsyncService service;
  std::unique_ptr<grpc::ServerCompletionQueue> queue;
  std::unique_ptr<grpc::Server> server;
};

struct EchoClient {
  grpc::CompletionQueue queue;
  std::vector<std::unique_ptr<Echo::Stub>> servers;
  std::unique_ptr<Made> last;
};

extern "C" {
const char* echo_version() {
  static const std::string version = grpc::Version();
  return version.c_str();
}

// Starts a server at an address with a free port, and writes the port; null if it cannot be
// started.
EchoServer* echo_listen(const char* address, int* port) {
  auto server = std::make_unique<EchoServer>();
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials(), port);
  builder.RegisterService(&server->service);
  server->queue = builder.AddCompletionQueue();
  server->server = builder.BuildAndStart();
  return server->server ? server.release() : nullptr;
}

// Answers requests until the server is stopped.
void echo_serve(EchoServer* server) {
  for (int i = 0; i < kWaiting; i++) new Served(&server->service, server->queue.get());
  void* tag;
  bool is_ok;
  while (server->queue->Next(&tag, &is_ok)) {
    auto* call = static_cast<Served*>(tag);
    if (is_ok) call->Proceed();
    else delete call;
  }
}

void echo_stop(EchoServer* server) {
  server->server->Shutdown(std::chrono::system_clock::now());
  server->queue->Shutdown();
}

EchoClient* echo_client() { return new EchoClient; }

// Adds a server, with a separate connection.
void echo_connect(EchoClient* client, const char* address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  client->servers.push_back(Echo::NewStub(
      grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments)));
}

void echo_send(EchoClient* client, size_t server, uint64_t call, const char* bytes, size_t length) {
  auto* made = new Made{call};
  Data data;
  data.set_bytes(bytes, length);
  made->reader = client->servers[server]->AsyncCall(&made->context, data, &client->queue);
  made->reader->Finish(&made->reply, &made->status, made);
}

// Waits for the next reply, for up to `micros`, or indefinitely if that is negative. Returns its
// length, -1 if its call has failed, or -2 on timeout. The reply is valid until the next call of
// this function.
ptrdiff_t echo_receive(EchoClient* client, int64_t micros, uint64_t* call, const char** reply) {
  gpr_timespec deadline = micros < 0    ? gpr_inf_future(GPR_CLOCK_MONOTONIC)
                          : micros == 0 ? gpr_time_0(GPR_CLOCK_MONOTONIC)
                                        : gpr_time_from_micros(micros, GPR_TIMESPAN);
  void* tag;
  bool is_ok;
  auto next = client->queue.AsyncNext(&tag, &is_ok, deadline);
  if (next != grpc::CompletionQueue::GOT_EVENT) return -2;
  client->last.reset(static_cast<Made*>(tag));
  if (!is_ok || !client->last->status.ok()) return -1;
  *call = client->last->call;
  *reply = client->last->reply.bytes().data();
  return static_cast<ptrdiff_t>(client->last->reply.bytes().size());
}

}  // extern "C"
