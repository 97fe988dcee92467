//! s2n-quic: QUIC, a separate stream for each call. Always encrypted.

use std::process::ExitCode;

use bytes::Bytes;
use compare_kit::{
    Class, Client, Connector, Description, Error, Peer, Server, Waits, answer, calls, run,
    serve_async,
};
use s2n_quic::client::Connect;
use s2n_quic::provider::tls::rustls;
use s2n_quic::stream::BidirectionalStream;
use tokio::sync::Mutex;

struct S2nQuic;

impl Peer for S2nQuic {
    fn describe() -> Description {
        Description {
            name: "s2n-quic".to_owned(),
            package: Some("s2n-quic".to_owned()),
            settings: "a runtime of one thread on each side, one connection, a bidirectional stream for each call, TLS 1.3 of rustls"
                .to_owned(),
            advice: "its defaults: segmentation offload is on where the system has it".to_owned(),
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
            let tls = rustls::Server::builder()
                .with_certificate(keys.certificate().as_path(), keys.key().as_path())?
                .build()?;
            let builder = s2n_quic::Server::builder().with_tls(tls)?;
            let mut server = builder.with_io(bind)?.start()?;
            let address = server.local_addr()?;
            tokio::spawn(async move {
                while let Some(mut connection) = server.accept().await {
                    tokio::spawn(async move {
                        while let Ok(Some(stream)) = connection.accept_bidirectional_stream().await
                        {
                            tokio::spawn(echo(stream));
                        }
                    });
                }
            });
            Ok(address)
        })
    }

    fn client(client: &Client) -> Result<Box<dyn Connector>, Error> {
        let certificate = client.keys.certificate();
        let tls = rustls::Client::builder().with_certificate(certificate.as_path())?.build()?;
        let client = s2n_quic::Client::builder().with_tls(tls)?.with_io(client.bind)?.start()?;
        Ok(calls(async move |server| {
            let connect = Connect::new(server).with_server_name("localhost");
            let connection = Mutex::new(client.connect(connect).await?);
            Ok(async move |request: Bytes| {
                let mut stream = connection.lock().await.open_bidirectional_stream().await?;
                stream.send(request).await?;
                stream.finish()?;
                read(&mut stream).await
            })
        }))
    }
}

/// Reads a stream to its end.
async fn read(stream: &mut BidirectionalStream) -> Result<Bytes, Error> {
    let Some(first) = stream.receive().await? else { return Ok(Bytes::new()) };
    let Some(second) = stream.receive().await? else { return Ok(first) };
    let mut whole = [first, second].concat();
    while let Some(chunk) = stream.receive().await? {
        whole.extend_from_slice(&chunk);
    }
    Ok(whole.into())
}

/// Answers a stream.
async fn echo(mut stream: BidirectionalStream) -> Result<(), Error> {
    let request = read(&mut stream).await?;
    let receipt = answer(&request);
    let reply = receipt.map_or(request, |receipt| receipt.to_vec().into());
    stream.send(reply).await?;
    stream.finish()?;
    Ok(())
}

fn main() -> ExitCode {
    run::<S2nQuic>()
}
