//! gRPC C++: a unary method of generated code, called through a completion queue.

mod ffi;

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use compare_kit::{
    Caller, Class, Client, Connector, Description, Error, MAX_LENGTH, Peer, Server, Waits, caller,
    run,
};

struct GrpcCpp;

impl Peer for GrpcCpp {
    fn describe() -> Description {
        Description {
            name: "grpc-cpp".to_owned(),
            package: None,
            settings: format!(
                "gRPC C++ {} of the system, one HTTP/2 connection to each server, a completion queue on each side, one thread that answers or calls; deadlines of whole milliseconds",
                ffi::version()
            ),
            advice: "its guide recommends completion queues for most calls a second, one channel, and no synchronous methods"
                .to_owned(),
            waits: Waits::Block,
            longest: Some(MAX_LENGTH),
            is_node: true,
            grows: true,
            class: Class::Clear,
        }
    }

    fn serve(server: &mut Server<'_>) -> Result<(), Error> {
        let (grpc, port) = ffi::Server::listen(server.bind)?;
        server.stop().wake_with(move || grpc.stop());
        server.ready(SocketAddr::new(server.bind.ip(), port))?;
        grpc.serve();
        Ok(())
    }

    fn client(_: &Client) -> Result<Box<dyn Connector>, Error> {
        Ok(caller(move |servers| {
            let mut grpc = ffi::Client::new();
            servers.iter().try_for_each(|&server| grpc.connect(server))?;
            Ok(Calls { grpc })
        }))
    }
}

/// Calls of a client.
struct Calls {
    grpc: ffi::Client,
}

impl Caller for Calls {
    fn send(&mut self, server: usize, call: u64, request: &[u8]) -> Result<(), Error> {
        self.grpc.send(server, call, request);
        Ok(())
    }

    fn receive(
        &mut self,
        wait: Option<Duration>,
        reply: &mut Vec<u8>,
    ) -> Result<Option<u64>, Error> {
        let received = self.grpc.receive(wait)?;
        Ok(received.map(|(call, bytes)| {
            reply.extend_from_slice(bytes);
            call
        }))
    }
}

fn main() -> ExitCode {
    run::<GrpcCpp>()
}
