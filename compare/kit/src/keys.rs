//! Throw-away keys of peers that encrypt.

use serde::{Deserialize, Serialize};

/// Name in the certificate.
const NAME: &str = "localhost";

/// A certificate for `localhost` that vouches for itself, and its key. Both sides have them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Keys {
    /// The certificate in PEM.
    pub certificate: String,
    /// Its private key in PEM.
    pub key: String,
}

impl Keys {
    /// Name in the certificate.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        NAME
    }
}
