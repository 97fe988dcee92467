//! tarpc over TCP: a typed method of bytes.

use std::process::ExitCode;

use bytes::Bytes;
use compare_kit::{
    Class, Client, Connector, Description, Error, Peer, Server, Waits, answer, calls, run,
    serve_async,
};
use futures_util::StreamExt;
use tarpc::context::{self, Context};
use tarpc::serde::{Deserialize, Serialize};
use tarpc::serde_transport::{self, Transport};
use tarpc::server::{BaseChannel, Channel};
use tarpc::tokio_serde::formats::Bincode;
use tarpc::tokio_util::codec::LengthDelimitedCodec;
use tokio::net::{TcpListener, TcpStream};

#[tarpc::service]
trait Echo {
    async fn call(request: Bytes) -> Bytes;
}

#[derive(Clone)]
struct Echoes;

impl Echo for Echoes {
    async fn call(self, _: Context, request: Bytes) -> Bytes {
        let receipt = answer(&request);
        receipt.map_or(request, |receipt| receipt.to_vec().into())
    }
}

struct Tarpc;

impl Peer for Tarpc {
    fn describe() -> Description {
        Description {
            name: "tarpc".to_owned(),
            package: Some("tarpc".to_owned()),
            settings: "a runtime of one thread on each side, one TCP connection, bincode, serde's bytes, TCP_NODELAY".to_owned(),
            advice: "its examples use one connection and a task for each request; TCP_NODELAY is not set by it, and is set here".to_owned(),
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
            tokio::spawn(async move {
                while let Ok((stream, _)) = listener.accept().await {
                    let Ok(transport) = transport(stream) else { continue };
                    let calls = BaseChannel::with_defaults(transport).execute(Echoes.serve());
                    tokio::spawn(calls.for_each(async |call| drop(tokio::spawn(call))));
                }
            });
            Ok(address)
        })
    }

    fn client(_: &Client) -> Result<Box<dyn Connector>, Error> {
        Ok(calls(async |server| {
            let transport = transport(TcpStream::connect(server).await?)?;
            let client = EchoClient::new(tarpc::client::Config::default(), transport).spawn();
            Ok(async move |request| Ok(client.call(context::current(), request).await?))
        }))
    }
}

type OverTcp<Item, SinkItem> = Transport<TcpStream, Item, SinkItem, Bincode<Item, SinkItem>>;

fn transport<Item, SinkItem>(stream: TcpStream) -> Result<OverTcp<Item, SinkItem>, Error>
where
    Item: for<'de> Deserialize<'de>,
    SinkItem: Serialize,
{
    stream.set_nodelay(true)?;
    let framed = LengthDelimitedCodec::builder().new_framed(stream);
    Ok(serde_transport::new(framed, Bincode::default()))
}

fn main() -> ExitCode {
    run::<Tarpc>()
}
