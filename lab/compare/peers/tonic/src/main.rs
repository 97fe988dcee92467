//! tonic: a unary method of generated code over HTTP/2.

use std::process::ExitCode;

use bytes::Bytes;
use compare_kit::{
    Class, Client, Connector, Description, Error, Peer, Server, Waits, answer, calls, run,
    serve_async,
};
use futures_util::StreamExt;
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status};

use echo::Data;
use echo::echo_client::EchoClient;
use echo::echo_server::{Echo, EchoServer};

// Committed, so that no protoc is needed.
#[path = "../../../../bench/src/rpc/generated/echo.rs"]
#[allow(missing_docs, unused_qualifications, clippy::all, clippy::pedantic)]
mod echo;

struct Echoes;

#[tonic::async_trait]
impl Echo for Echoes {
    async fn call(&self, request: Request<Data>) -> Result<Response<Data>, Status> {
        let request = request.into_inner().bytes;
        let receipt = answer(&request);
        let bytes = receipt.map_or(request, |receipt| receipt.to_vec().into());
        Ok(Response::new(Data { bytes }))
    }
}

struct Tonic;

impl Peer for Tonic {
    fn describe() -> Description {
        Description {
            name: "tonic".to_owned(),
            package: Some("tonic".to_owned()),
            settings: "a runtime of one thread on each side, prost, one HTTP/2 connection, TCP_NODELAY".to_owned(),
            advice: "one channel that is cloned for each task, as tonic's documentation says; TCP_NODELAY is its default".to_owned(),
            waits: Waits::Block,
            longest: None,
            is_node: true,
            grows: true,
            class: Class::Clear,
        }
    }

    fn serve(server: &mut Server<'_>) -> Result<(), Error> {
        let bind = server.bind;
        serve_async(server, async move || {
            let listener = TcpListener::bind(bind).await?;
            let address = listener.local_addr()?;
            let incoming = TcpListenerStream::new(listener).map(|stream| {
                let stream = stream?;
                stream.set_nodelay(true)?;
                Ok::<_, std::io::Error>(stream)
            });
            let server = tonic::transport::Server::builder().add_service(EchoServer::new(Echoes));
            tokio::spawn(server.serve_with_incoming(incoming));
            Ok(address)
        })
    }

    fn client(_: &Client) -> Result<Box<dyn Connector>, Error> {
        Ok(calls(async |server| {
            let channel = tonic::transport::Endpoint::from_shared(format!("http://{server}"))?;
            let client = EchoClient::new(channel.tcp_nodelay(true).connect().await?);
            Ok(async move |bytes: Bytes| {
                let reply = client.clone().call(Data { bytes }).await?;
                Ok(reply.into_inner().bytes)
            })
        }))
    }
}

fn main() -> ExitCode {
    run::<Tonic>()
}
