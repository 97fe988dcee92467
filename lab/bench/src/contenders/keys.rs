//! Throw-away keys for contenders with encrypted messages.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use apus::security::{SecurityMode, SecuritySettings};
use serde::{Deserialize, Serialize};

use apus_testbed::error::{Doing, Error};

/// A folder with a secret for apus and a certificate for TLS. Both sides of a contender read it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThrowAwayKeys {
    folder: PathBuf,
}

impl ThrowAwayKeys {
    /// Returns the keys created by [`ThrowAwayKeys::create`] in `folder`.
    #[must_use]
    pub fn in_folder(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// Creates keys in the existing `folder`.
    ///
    /// # Errors
    ///
    /// A file cannot be written.
    pub fn create(folder: &Path) -> Result<Self, Error> {
        let keys = Self::in_folder(folder);
        let mut secret = [0; 32];
        getrandom::fill(&mut secret)
            .map_err(|error| Error::endpoint("draw a secret".to_owned(), error))?;
        // As text: leading and trailing white space of a secret is ignored, and random bytes may be
        // white space.
        let secret: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
        write(&keys.secret(), secret.as_bytes())?;
        let failed = |error| Error::endpoint("make a certificate".to_owned(), error);
        let rcgen::CertifiedKey { cert, signing_key } =
            rcgen::generate_simple_self_signed(["localhost".to_owned()]).map_err(failed)?;
        write(&keys.certificate(), cert.pem().as_bytes())?;
        write(&keys.key(), signing_key.serialize_pem().as_bytes())?;
        Ok(keys)
    }

    /// Returns the settings of an endpoint with the secret.
    #[must_use]
    pub fn security(&self) -> SecuritySettings {
        SecuritySettings {
            mode: SecurityMode::Secret,
            secret: Some(self.secret()),
            ..SecuritySettings::default()
        }
    }

    fn secret(&self) -> PathBuf {
        self.folder.join("secret")
    }

    /// Returns the file of the certificate, for `localhost`.
    #[must_use]
    pub fn certificate(&self) -> PathBuf {
        self.folder.join("tls.pem")
    }

    /// Returns the file of its key.
    #[must_use]
    pub fn key(&self) -> PathBuf {
        self.folder.join("tls.key")
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let _ = fs::remove_file(path);
    let open = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    open.and_then(|mut file| file.write_all(bytes)).doing(|| format!("write {}", path.display()))
}
