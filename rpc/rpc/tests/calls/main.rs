//! Calls between a client and a server over a network in memory: unary, streams, deadlines,
//! failures, and hostile clients and servers.

mod deadlines;
mod failures;
mod gone;
mod hostile;
mod notifications;
mod streams;
mod unary;

use apus::tokio::Endpoint;
use apus_driver::loopback::LoopbackNetwork;
use apus_rpc::{Channel, Handler, Request, Response, Server, ServerControl, Status};

/// A handler of the service `test`, made from a function.
pub(crate) struct Function<F>(pub(crate) F);

impl<F, R> Handler for Function<F>
where
    F: Fn(Request) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Response, Status>> + Send + 'static,
{
    fn service(&self) -> &'static str {
        "test"
    }

    fn call(&self, request: Request) -> apus_rpc::BoxFuture<Result<Response, Status>> {
        Box::pin(self.0(request))
    }
}

/// Three endpoints on a separate network.
pub(crate) async fn three_endpoints() -> [Endpoint; 3] {
    let network = LoopbackNetwork::new();
    let on = async || Endpoint::builder().with_driver(Box::new(network.host())).await.unwrap();
    [on().await, on().await, on().await]
}

/// Two endpoints on a separate network.
pub(crate) async fn endpoints() -> (Endpoint, Endpoint) {
    let [client, server, _] = three_endpoints().await;
    (client, server)
}

/// A channel to a server with this handler, and the server's control. The server ends with the
/// runtime.
pub(crate) async fn serve<F, R>(function: F) -> (Channel, ServerControl)
where
    F: Fn(Request) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Response, Status>> + Send + 'static,
{
    let (client, server) = endpoints().await;
    let to = server.local_addr();
    let (control, served) = Server::new(server).add_service(Function(function)).start();
    tokio::spawn(served);
    (Channel::new(client, to), control)
}

/// Waits until `done`, while other tasks run.
pub(crate) async fn until(done: impl Fn() -> bool) {
    while !done() {
        tokio::task::yield_now().await;
    }
}

/// A stream of the items that a test sends into a channel.
pub(crate) struct FromChannel<T>(pub(crate) tokio::sync::mpsc::Receiver<T>);

impl<T> futures_core::Stream for FromChannel<T> {
    type Item = T;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<T>> {
        self.0.poll_recv(cx)
    }
}
