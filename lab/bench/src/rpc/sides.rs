//! The two sides of each contender: its server, and a measured call. All echo their payload.

use crate::contender::Contender;
use crate::echo::Data;
use crate::echo::echo_client::EchoClient;
use crate::echo::echo_server::{Echo, EchoServer};
use crate::error::Error;
use crate::load::{many, one_at_a_time};
use crate::options::RpcOptions;
use crate::server::{announce, until_the_end};
use apus_report::stats::Latencies;
use apus_rpc::apus::tokio::Endpoint;
use bytes::Bytes;
use futures_util::StreamExt;
use serde::Serialize;
use std::net::SocketAddr;
use tarpc::server::{BaseChannel, Channel as _};
use tarpc::tokio_serde::formats::Bincode;
use tarpc::tokio_util::codec::LengthDelimitedCodec;
use tokio::net::{TcpListener, TcpStream};
use tokio_stream::wrappers::TcpListenerStream;

#[apus_rpc::service]
trait Typed {
    async fn echo(&self, data: Bytes) -> Bytes;
}

struct Echoes;

impl Typed for Echoes {
    async fn echo(&self, data: Bytes) -> Bytes {
        data
    }
}

#[tonic::async_trait]
impl Echo for Echoes {
    async fn call(
        &self,
        request: tonic::Request<Data>,
    ) -> Result<tonic::Response<Data>, tonic::Status> {
        Ok(tonic::Response::new(request.into_inner()))
    }
}

#[tarpc::service]
trait OverTcp {
    async fn echo(data: Bytes) -> Bytes;
}

#[derive(Clone)]
struct TcpEchoes;

impl OverTcp for TcpEchoes {
    async fn echo(self, _: tarpc::context::Context, data: Bytes) -> Bytes {
        data
    }
}

/// An endpoint restricted to the network path.
async fn bind() -> Result<Endpoint, Error> {
    Ok(Endpoint::builder().local(false).bind("127.0.0.1:0").await?)
}

/// An endpoint for calls, restricted to the network path.
pub(crate) async fn client() -> Result<Endpoint, Error> {
    Ok(Endpoint::builder().local(false).client().await?)
}

/// In the server's process: serves until the standard input ends.
pub(crate) async fn serve(contender: Contender) -> Result<(), Error> {
    match contender {
        Contender::Call => {
            let endpoint = bind().await?;
            announce(endpoint.local_addr());
            tokio::spawn(async move {
                while let Ok(mut request) = endpoint.recv_request().await {
                    let payload = request.take_payload();
                    let _ = request.reply(payload).await;
                }
            });
        }
        Contender::Service => {
            let endpoint = bind().await?;
            announce(endpoint.local_addr());
            let server = apus_rpc::Server::new(endpoint);
            tokio::spawn(server.add_service(TypedServer::new(Echoes)).serve());
        }
        Contender::TonicApus => {
            let endpoint = bind().await?;
            announce(endpoint.local_addr());
            let handler = apus_tonic::handler(EchoServer::new(Echoes));
            tokio::spawn(apus_rpc::Server::new(endpoint).add_service(handler).serve());
        }
        Contender::TonicHttp2 => {
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            announce(listener.local_addr()?);
            let incoming = TcpListenerStream::new(listener).map(|stream| {
                let stream = stream?;
                stream.set_nodelay(true)?;
                Ok::<_, std::io::Error>(stream)
            });
            let server = tonic::transport::Server::builder().add_service(EchoServer::new(Echoes));
            tokio::spawn(server.serve_with_incoming(incoming));
        }
        Contender::Tarpc => {
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            announce(listener.local_addr()?);
            tokio::spawn(async move {
                while let Ok((stream, _)) = listener.accept().await {
                    let Ok(()) = stream.set_nodelay(true) else { return };
                    let channel = BaseChannel::with_defaults(transport(stream));
                    let calls = channel.execute(TcpEchoes.serve());
                    tokio::spawn(calls.for_each(async |call| drop(tokio::spawn(call))));
                }
            });
        }
    }
    until_the_end().await
}

/// A connection of tarpc.
fn transport<Item, Sink>(
    stream: TcpStream,
) -> tarpc::serde_transport::Transport<TcpStream, Item, Sink, Bincode<Item, Sink>>
where
    Item: for<'de> serde::Deserialize<'de>,
    Sink: Serialize,
{
    let framed = LengthDelimitedCodec::builder().new_framed(stream);
    tarpc::serde_transport::new(framed, Bincode::default())
}

/// Measurements of a contender in a run.
pub(crate) struct Measured {
    pub(crate) latencies: Latencies,
    pub(crate) per_second: f64,
}

/// In the client's process: measures a contender.
pub(crate) async fn measure(
    contender: Contender,
    to: SocketAddr,
    options: &RpcOptions,
) -> Result<Measured, Error> {
    let data = Bytes::from(vec![7; options.size]);
    let size = data.len();
    let check = move |length: usize| match length == size {
        true => Ok(()),
        false => Err(Error::from(format!("an echo has {length} bytes instead of {size}"))),
    };
    match contender {
        Contender::Call => {
            let endpoint = client().await?;
            run(options, async move || check(endpoint.call(to, data.clone()).await?.len())).await
        }
        Contender::Service => {
            let channel = apus_rpc::Channel::new(client().await?, to);
            let client = TypedClient::new(channel);
            run(options, async move || check(client.echo(data.clone()).await?.len())).await
        }
        Contender::TonicApus => {
            let channel = apus_rpc::Channel::new(client().await?, to);
            let client = EchoClient::new(apus_tonic::Channel::new(channel));
            run(options, async move || {
                let call = Data { bytes: data.clone() };
                check(client.clone().call(call).await?.into_inner().bytes.len())
            })
            .await
        }
        Contender::TonicHttp2 => {
            let channel = tonic::transport::Endpoint::from_shared(format!("http://{to}"))?;
            let client = EchoClient::new(channel.tcp_nodelay(true).connect().await?);
            run(options, async move || {
                let call = Data { bytes: data.clone() };
                check(client.clone().call(call).await?.into_inner().bytes.len())
            })
            .await
        }
        Contender::Tarpc => {
            let stream = TcpStream::connect(to).await?;
            stream.set_nodelay(true)?;
            let config = tarpc::client::Config::default();
            let client = OverTcpClient::new(config, transport(stream)).spawn();
            run(options, async move || {
                check(client.echo(tarpc::context::current(), data.clone()).await?.len())
            })
            .await
        }
    }
}

async fn run<F>(options: &RpcOptions, call: F) -> Result<Measured, Error>
where
    F: AsyncFn() -> Result<(), Error> + 'static,
{
    let latencies = one_at_a_time(&call, options.period()).await?;
    let per_second = many(call, options.outstanding, options.period()).await?;
    Ok(Measured { latencies, per_second })
}
