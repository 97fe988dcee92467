//! TCP on tokio.

use std::process::ExitCode;

use compare_kit::{
    Class, Client, Description, Error, Measured, Peer, Server, Waits, measure_calls, run,
    serve_async,
};
use compare_tokio::{calls, echo};
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
            class: Class::Clear,
        }
    }

    fn serve(server: &mut Server<'_>) -> Result<(), Error> {
        serve_async(server, async || {
            let listener = TcpListener::bind("127.0.0.1:0").await?;
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

    fn measure(client: &Client) -> Result<Measured, Error> {
        let server = client.server;
        measure_calls(client, async move || {
            let stream = TcpStream::connect(server).await?;
            stream.set_nodelay(true)?;
            Ok(calls(stream))
        })
    }
}

fn main() -> ExitCode {
    run::<Tokio>()
}
