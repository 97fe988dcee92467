//! quinn: both ends of a QUIC connection. Always encrypted.

use std::net::SocketAddr;
use std::sync::Arc;

use compare_kit::{Client, Error, ThrowAwayKeys};
use quinn::rustls::RootCertStore;
use quinn::rustls::pki_types::pem::PemObject;
use quinn::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use quinn::{ClientConfig, Endpoint, ServerConfig};

/// A server's endpoint.
///
/// # Errors
///
/// It cannot be bound, or its keys cannot be read.
pub fn listen(keys: &ThrowAwayKeys, bind: SocketAddr) -> Result<Endpoint, Error> {
    let certificate = CertificateDer::from_pem_file(keys.certificate())?;
    let key = PrivateKeyDer::from_pem_file(keys.key())?;
    let config = ServerConfig::with_single_cert(vec![certificate], key)?;
    Ok(Endpoint::server(config, bind)?)
}

/// A client's endpoint.
///
/// # Errors
///
/// It cannot be bound, or its keys cannot be read.
pub fn caller(client: &Client) -> Result<Endpoint, Error> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(client.keys.certificate())?)?;
    let config = ClientConfig::with_root_certificates(Arc::new(roots))?;
    let mut endpoint = Endpoint::client(client.bind)?;
    endpoint.set_default_client_config(config);
    Ok(endpoint)
}
