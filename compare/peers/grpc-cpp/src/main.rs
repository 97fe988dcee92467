//! gRPC C++: a unary method of generated code, called through a completion queue.

mod ffi;

use std::net::SocketAddr;
use std::process::ExitCode;

use compare_kit::{
    Class, Client, Connection, Connector, Description, Error, MAX_LENGTH, Peer, Server, Waits,
    connections, run,
};

struct GrpcCpp;

impl Peer for GrpcCpp {
    fn describe() -> Description {
        Description {
            name: "grpc-cpp".to_owned(),
            package: None,
            settings: format!(
                "gRPC C++ {} of the system, one HTTP/2 connection, completion queues, one thread that answers or calls",
                ffi::version()
            ),
            advice: "its guide recommends completion queues for most calls a second, one channel, and no synchronous methods"
                .to_owned(),
            waits: Waits::Block,
            longest: Some(MAX_LENGTH),
            is_node: false,
            class: Class::Clear,
        }
    }

    fn serve(server: &mut Server<'_>) -> Result<(), Error> {
        let (grpc, port) = ffi::Server::listen()?;
        server.stop().wake_with(move || grpc.stop());
        server.ready(SocketAddr::from(([127, 0, 0, 1], port)))?;
        grpc.serve();
        Ok(())
    }

    fn client(client: &Client) -> Result<Box<dyn Connector>, Error> {
        let capacity = client.work.size();
        Ok(connections(move |server| {
            Ok(Calls { grpc: ffi::Client::connect(&server.to_string())?, capacity })
        }))
    }
}

/// Calls of a client.
struct Calls {
    grpc: ffi::Client,
    /// Bytes of the longest reply.
    capacity: usize,
}

impl Connection for Calls {
    fn send(&mut self, request: &[u8]) -> Result<(), Error> {
        self.grpc.send(request);
        Ok(())
    }

    fn receive(&mut self, reply: &mut Vec<u8>) -> Result<(), Error> {
        reply.resize(self.capacity, 0);
        let length = self.grpc.receive(reply).ok_or("a call has failed")?;
        reply.truncate(length);
        Ok(())
    }
}

fn main() -> ExitCode {
    run::<GrpcCpp>()
}
