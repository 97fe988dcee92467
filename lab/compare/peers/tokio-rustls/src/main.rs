//! TLS 1.3 over TCP on tokio: the frames and tasks of the peer `tokio` on encrypted streams.

use std::process::ExitCode;
use std::sync::Arc;

use compare_kit::{
    Class, Client, Connector, Description, Error, Peer, Server, Waits, calls, run, serve_async,
};
use compare_tokio::{caller, echo};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::spawn_local;
use tokio_rustls::rustls::crypto::CryptoProvider;
use tokio_rustls::rustls::crypto::ring::{cipher_suite, default_provider};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector};

struct TokioRustls;

impl Peer for TokioRustls {
    fn describe() -> Description {
        Description {
            name: "tokio-rustls".to_owned(),
            package: Some("tokio-rustls".to_owned()),
            settings: "as tokio, in TLS 1.3 with AES-128-GCM of ring".to_owned(),
            advice: "as tokio; the handshake is over before calls count".to_owned(),
            waits: Waits::Block,
            longest: None,
            is_node: true,
            grows: true,
            class: Class::Sealed,
        }
    }

    fn serve(server: &mut Server<'_>) -> Result<(), Error> {
        let certificate = CertificateDer::from_pem_file(server.keys.certificate())?;
        let key = PrivateKeyDer::from_pem_file(server.keys.key())?;
        let config = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&TLS13])?
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)?;
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let bind = server.bind;
        serve_async(server, async move || {
            let listener = TcpListener::bind(bind).await?;
            let address = listener.local_addr()?;
            spawn_local(async move {
                while let Ok((stream, _)) = listener.accept().await {
                    let acceptor = acceptor.clone();
                    spawn_local(async move {
                        stream.set_nodelay(true)?;
                        echo(acceptor.accept(stream).await?).await
                    });
                }
            });
            Ok(address)
        })
    }

    fn client(client: &Client) -> Result<Box<dyn Connector>, Error> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(client.keys.certificate())?)?;
        let config = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&TLS13])?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let connector = TlsConnector::from(Arc::new(config));
        let name = ServerName::try_from("localhost")?;
        Ok(calls(async move |server| {
            let stream = TcpStream::connect(server).await?;
            stream.set_nodelay(true)?;
            Ok(caller(connector.connect(name.clone(), stream).await?))
        }))
    }
}

/// The cipher of apus, of ring.
fn provider() -> Arc<CryptoProvider> {
    let cipher_suites = vec![cipher_suite::TLS13_AES_128_GCM_SHA256];
    Arc::new(CryptoProvider { cipher_suites, ..default_provider() })
}

fn main() -> ExitCode {
    run::<TokioRustls>()
}
