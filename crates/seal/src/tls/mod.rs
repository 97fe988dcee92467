//! Handshakes by TLS 1.3, through the interface that rustls has for QUIC. The only module that names rustls.

mod credentials;
mod keys;
mod known_keys;
mod negotiation;
mod pem;
mod provider;
mod trust;
mod verifier;

pub use credentials::{Credentials, CredentialsError};
pub use known_keys::KnownKey;
pub use negotiation::{TlsNegotiator, log_keys};
pub use pem::check_permissions;
pub use provider::{describe_certificate, fingerprint_of};
pub use trust::{Admission, Trust};
