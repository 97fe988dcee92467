//! Handshakes with TLS 1.3, through the interface that rustls has for QUIC. No other module names
//! rustls.

mod credentials;
mod error;
mod keys;
mod known_keys;
mod mode;
mod negotiation;
mod pem;
mod provider;
mod settings;
mod trust;
mod validity;
mod verifier;

pub use credentials::Credentials;
pub use error::CredentialsError;
pub use known_keys::KnownKey;
pub use mode::SecurityMode;
pub use negotiation::{TlsNegotiator, log_keys};
pub use pem::{certificates_in, check_permissions, pem_certificates};
pub use provider::{crypto_provider, describe_certificate, fingerprint_of};
pub use settings::{Plaintext, Security, SecuritySettings, Stamp};
pub use trust::{Admission, Trust};
pub use validity::certificate_validity;
