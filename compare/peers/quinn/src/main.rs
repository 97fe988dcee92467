//! quinn: QUIC, a stream of its own for each call. Always encrypted.

use std::process::ExitCode;
use std::sync::Arc;

use bytes::Bytes;
use compare_kit::{
    Class, Client, Description, Error, MAX_LENGTH, Measured, Peer, Server, Waits, answer,
    measure_calls, run, serve_async,
};
use quinn::rustls::RootCertStore;
use quinn::rustls::pki_types::pem::PemObject;
use quinn::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use quinn::{ClientConfig, Connection, Endpoint, ServerConfig};

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
            class: Class::Sealed,
        }
    }

    fn serve(server: &mut Server<'_>) -> Result<(), Error> {
        let certificate = CertificateDer::from_pem_file(server.keys.certificate())?;
        let key = PrivateKeyDer::from_pem_file(server.keys.key())?;
        let config = ServerConfig::with_single_cert(vec![certificate], key)?;
        serve_async(server, async move || {
            let endpoint = Endpoint::server(config, "127.0.0.1:0".parse()?)?;
            let address = endpoint.local_addr()?;
            tokio::spawn(async move {
                while let Some(incoming) = endpoint.accept().await {
                    tokio::spawn(echo(incoming));
                }
            });
            Ok(address)
        })
    }

    fn measure(client: &Client) -> Result<Measured, Error> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(client.keys.certificate())?)?;
        let config = ClientConfig::with_root_certificates(Arc::new(roots))?;
        let server = client.server;
        measure_calls(client, async move || {
            let mut endpoint = Endpoint::client("127.0.0.1:0".parse()?)?;
            endpoint.set_default_client_config(config);
            let connection = endpoint.connect(server, "localhost")?.await?;
            Ok(async move |request: Bytes| {
                let (mut send, mut receive) = connection.open_bi().await?;
                send.write_chunk(request).await?;
                send.finish()?;
                Ok(receive.read_to_end(MAX_LENGTH).await?.into())
            })
        })
    }
}

/// Answers the streams of a connection until its end.
async fn echo(incoming: quinn::Incoming) -> Result<(), Error> {
    let connection: Connection = incoming.await?;
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
