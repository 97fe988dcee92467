//! TCP on tokio.

use std::process::ExitCode;

use compare_kit::{
    Class, Client, Connector, Description, Error, Peer, Server, Waits, calls, run, serve_async,
};
use compare_tokio::{caller, echo};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::spawn_local;

struct Tokio;

impl Peer for Tokio {
    fn describe() -> Description {
        Description {
            name: "tokio".to_owned(),
            package: Some("tokio".to_owned()),
            settings: "a runtime of one thread on each side, one connection, Framed with LengthDelimitedCodec, frames that are ready leave together, TCP_NODELAY".to_owned(),
            advice: "tokio's documentation recommends set_nodelay for requests and replies, and a runtime of one thread for one connection"
                .to_owned(),
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
            spawn_local(async move {
                while let Ok((stream, _)) = listener.accept().await {
                    if stream.set_nodelay(true).is_ok() {
                        spawn_local(echo(stream));
                    }
                }
            });
            Ok(address)
        })
    }

    fn client(_: &Client) -> Result<Box<dyn Connector>, Error> {
        Ok(calls(async |server| {
            let stream = TcpStream::connect(server).await?;
            stream.set_nodelay(true)?;
            Ok(caller(stream))
        }))
    }
}

fn main() -> ExitCode {
    run::<Tokio>()
}
