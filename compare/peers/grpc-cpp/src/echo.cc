// gRPC C++: unary calls through completion queues, one thread on each side.
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "bench.grpc.pb.h"

using bench::Data;
using bench::Echo;

extern "C" {
// Defined in ffi.rs: writes the receipt that a request asks for, and returns its length; 0 if it asks for none.
size_t compare_answer(const uint8_t* request, size_t length, uint8_t* receipt);
}

namespace {

// Requests for which a server waits at the same time.
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
    uint8_t receipt[kReceiptCapacity];
    size_t length =
        compare_answer(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(), receipt);
    if (length > 0) bytes.assign(reinterpret_cast<char*>(receipt), length);
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
  std::unique_ptr<Echo::Stub> stub;
};

extern "C" {

const char* echo_version() {
  static const std::string version = grpc::Version();
  return version.c_str();
}

// Starts a server on a free port, which it writes; null if it cannot be started.
EchoServer* echo_listen(int* port) {
  auto server = std::make_unique<EchoServer>();
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), port);
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
    if (is_ok) {
      call->Proceed();
    } else {
      delete call;
    }
  }
}

void echo_stop(EchoServer* server) {
  server->server->Shutdown(std::chrono::system_clock::now());
  server->queue->Shutdown();
}

EchoClient* echo_connect(const char* address) {
  auto* client = new EchoClient;
  client->stub = Echo::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  return client;
}

void echo_send(EchoClient* client, const uint8_t* request, size_t length) {
  auto* call = new Made;
  Data data;
  data.set_bytes(request, length);
  call->reader = client->stub->AsyncCall(&call->context, data, &client->queue);
  call->reader->Finish(&call->reply, &call->status, call);
}

// Waits for the next reply, and returns its length; -1 if its call has failed, or it does not fit.
ptrdiff_t echo_receive(EchoClient* client, uint8_t* reply, size_t capacity) {
  void* tag;
  bool is_ok;
  if (!client->queue.Next(&tag, &is_ok)) return -1;
  std::unique_ptr<Made> call(static_cast<Made*>(tag));
  const std::string& bytes = call->reply.bytes();
  if (!is_ok || !call->status.ok() || bytes.size() > capacity) return -1;
  std::memcpy(reply, bytes.data(), bytes.size());
  return static_cast<ptrdiff_t>(bytes.size());
}

}  // extern "C"
