//! Several servers: balancing, ejection, retries, hedging, names, and a rolling restart of real
//! processes.

mod balancing;
mod hedging;
mod names;
mod retries;
mod rolling;

use apus::tokio::Endpoint;
use apus_driver::loopback::LoopbackNetwork;
use apus_rpc::{BoxFuture, Handler, Request, Response, Server, ServerControl, Status};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// A test server: counts executions by the content of requests.
#[derive(Clone)]
pub(crate) struct Counting {
    pub(crate) name: u8,
    pub(crate) executed: Arc<AtomicU32>,
    /// Calls wait until this is `false`.
    pub(crate) stalled: tokio::sync::watch::Receiver<bool>,
}

impl Handler for Counting {
    fn service(&self) -> &'static str {
        "test"
    }

    fn call(&self, request: Request) -> BoxFuture<Result<Response, Status>> {
        let Self { name, executed, mut stalled } = self.clone();
        Box::pin(async move {
            executed.fetch_add(1, Ordering::Relaxed);
            if request.method().as_str() == "test/fail" {
                return Err(Status::new(apus_rpc::Code::Internal, "executed, and failed"));
            }
            let _ = stalled.wait_for(|stalled| !stalled).await;
            Ok(Response::new(vec![name]))
        })
    }
}

/// A running server.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) control: ServerControl,
    pub(crate) executed: Arc<AtomicU32>,
    pub(crate) stall: tokio::sync::watch::Sender<bool>,
}

impl Running {
    pub(crate) fn executed(&self) -> u32 {
        self.executed.load(Ordering::Relaxed)
    }
}

/// Starts `count` servers on a network in memory, and an endpoint for calls.
pub(crate) async fn servers(count: u8) -> (Endpoint, Vec<Running>) {
    let network = LoopbackNetwork::new();
    let on = async || Endpoint::builder().with_driver(Box::new(network.host())).await.unwrap();
    let mut servers = Vec::new();
    for name in 0..count {
        let endpoint = on().await;
        let address = endpoint.local_addr();
        let (stall, stalled) = tokio::sync::watch::channel(false);
        let executed = Arc::new(AtomicU32::new(0));
        let handler = Counting { name, executed: executed.clone(), stalled };
        let (control, served) = Server::new(endpoint).add_service(handler).start();
        tokio::spawn(served);
        servers.push(Running { address, control, executed, stall });
    }
    (on().await, servers)
}

/// Makes a call, and returns the name of the server that answered.
pub(crate) async fn call<S>(service: &S, request: Request) -> Result<u8, Status>
where
    S: apus_rpc::typed::Service,
{
    let response = apus_rpc::typed::send(service, request).await?;
    Ok(response.into_body().into_bytes(1).await?[0])
}

/// Waits until `done`, while other tasks run.
pub(crate) async fn until(done: impl Fn() -> bool) {
    while !done() {
        tokio::task::yield_now().await;
    }
}
