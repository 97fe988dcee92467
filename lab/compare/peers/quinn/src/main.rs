//! quinn: QUIC, a separate stream for each call. Always encrypted.

use std::process::ExitCode;

use bytes::Bytes;
use compare_kit::{
    Class, Client, Connector, Description, Error, MAX_LENGTH, Peer, Server, Waits, answer, calls,
    run, serve_async,
};
use compare_quinn::{caller, listen};
use quinn::Incoming;

struct Quinn;

impl Peer for Quinn {
    fn describe() -> Description {
        Description {
            name: "quinn".to_owned(),
            package: Some("quinn".to_owned()),
            settings: "a runtime of one thread on each side, one connection, a bidirectional stream for each call, TLS 1.3 with ring"
                .to_owned(),
            advice: "many short streams on one connection, as its documentation says; segmentation offload is on by itself".to_owned(),
            waits: Waits::Block,
            longest: None,
            is_node: true,
            grows: true,
            class: Class::Sealed,
        }
    }

    fn serve(server: &mut Server<'_>) -> Result<(), Error> {
        let (keys, bind) = (server.keys.clone(), server.bind);
        serve_async(server, async move || {
            let endpoint = listen(&keys, bind)?;
            let address = endpoint.local_addr()?;
            tokio::spawn(async move {
                while let Some(incoming) = endpoint.accept().await {
                    tokio::spawn(echo(incoming));
                }
            });
            Ok(address)
        })
    }

    fn client(client: &Client) -> Result<Box<dyn Connector>, Error> {
        let endpoint = caller(client)?;
        Ok(calls(async move |server| {
            let connection = endpoint.connect(server, "localhost")?.await?;
            Ok(async move |request: Bytes| {
                let (mut send, mut receive) = connection.open_bi().await?;
                send.write_chunk(request).await?;
                send.finish()?;
                Ok(receive.read_to_end(MAX_LENGTH).await?.into())
            })
        }))
    }
}

/// Answers the streams of a connection until its end.
async fn echo(incoming: Incoming) -> Result<(), Error> {
    let connection = incoming.await?;
    loop {
        let (mut send, mut receive) = connection.accept_bi().await?;
        tokio::spawn(async move {
            let request: Bytes = receive.read_to_end(MAX_LENGTH).await?.into();
            let receipt = answer(&request);
            let reply = receipt.map_or(request, |receipt| receipt.to_vec().into());
            send.write_chunk(reply).await?;
            send.finish()?;
            Ok::<(), Error>(())
        });
    }
}

fn main() -> ExitCode {
    run::<Quinn>()
}
