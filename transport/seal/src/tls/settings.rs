//! Security settings of an endpoint: credential files and admitted peers.

use super::credentials::Credentials;
use super::error::CredentialsError;
use super::mode::SecurityMode;
use super::negotiation::TlsNegotiator;
use super::trust::{Admission, Trust};
use crate::identity::Identity;
use crate::negotiation::Negotiator;
use std::fmt;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Traffic that is not sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Plaintext {
    /// None: calls to peers on this host are sealed as well, and use the network.
    #[default]
    Refuse,
    /// Calls to peers on this host use shared memory. The system vouches for the user of the peer's
    /// process, and no identity is checked.
    LocalOnly,
}

/// The table `[security]` of a settings file: credential files and rules.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct SecuritySettings {
    /// How endpoints prove their identity.
    pub mode: SecurityMode,
    /// Mode `tls`: the certificate of this host in PEM, followed by the intermediate certificates.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub certificate: Option<PathBuf>,
    /// Modes `tls` and `keys`: the private key of this host in PEM. Refused if other users may read
    /// it.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub key: Option<PathBuf>,
    /// Mode `tls`: the certificates, in PEM, of the CA that issues the peers' certificates.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub ca: Option<PathBuf>,
    /// Mode `tls`: lists of revoked certificates in PEM (RFC 5280).
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub revoked: Option<PathBuf>,
    /// Mode `keys`: names and fingerprints of the peers' keys, one per line.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub known: Option<PathBuf>,
    /// Mode `secret`: the secret of the cluster, at least 32 random bytes.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub secret: Option<PathBuf>,
    /// Names of the admitted peers, for example SPIFFE ids; a trailing `*` matches any suffix.
    /// Empty: all peers with a verified identity.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Vec::is_empty"))]
    pub allow: Vec<String>,
    /// Mode `tls`: whether a server's certificate must contain the called IP address.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "std::ops::Not::not"))]
    pub verify_address: bool,
    /// Traffic that is not sealed.
    pub plaintext: Plaintext,
}

impl SecuritySettings {
    /// Returns the settings with relative paths resolved against `folder`.
    #[must_use]
    pub fn in_folder(mut self, folder: &Path) -> Self {
        let Self { certificate, key, ca, revoked, known, secret, .. } = &mut self;
        for path in [certificate, key, ca, revoked, known, secret].into_iter().flatten() {
            *path = folder.join(&*path);
        }
        self
    }

    /// Returns the files that the mode reads.
    #[must_use]
    pub fn files(&self) -> Vec<&Path> {
        let Self { certificate, key, ca, revoked, known, secret, .. } = self;
        let files = match self.mode {
            SecurityMode::Tls => vec![certificate, key, ca, revoked],
            SecurityMode::Keys => vec![key, known],
            SecurityMode::Secret => vec![secret],
        };
        files.into_iter().flatten().map(PathBuf::as_path).collect()
    }

    /// Reads keys and certificates.
    ///
    /// # Errors
    ///
    /// [`CredentialsError`]: an option that the mode needs is missing, or a file cannot be used.
    pub fn credentials(&self) -> Result<Credentials, CredentialsError> {
        let Self { certificate, key, ca, revoked, known, secret, mode, .. } = self;
        let need = |path: &'_ Option<PathBuf>, option| match path {
            Some(path) => Ok(path.clone()),
            None => Err(CredentialsError::Missing { mode: *mode, option }),
        };
        match mode {
            SecurityMode::Tls => Credentials::certificates(
                &need(certificate, "certificate")?,
                &need(key, "key")?,
                &need(ca, "ca")?,
                revoked.as_deref(),
            ),
            SecurityMode::Keys => Credentials::keys(&need(key, "key")?, &need(known, "known")?),
            SecurityMode::Secret => Credentials::secret(&need(secret, "secret")?),
        }
    }

    /// Returns the inodes, times and sizes of the files, which change when a file does.
    fn stamp(&self) -> Stamp {
        let stamp = |path: &Path| {
            let metadata = std::fs::metadata(path).ok()?;
            let (time, nanos) = (metadata.mtime(), metadata.mtime_nsec());
            Some((metadata.ino(), time, nanos, metadata.size()))
        };
        Stamp(self.files().into_iter().map(stamp).collect())
    }
}

/// The state of all files that the settings name.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Stamp(Vec<Option<(u64, i64, i64, u64)>>);

/// The security of an endpoint: settings, and a check by the application.
#[derive(Clone)]
pub struct Security {
    settings: SecuritySettings,
    admission: Option<Admission>,
}

impl fmt::Debug for Security {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Security").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Security {
    /// Creates the security that `settings` describe.
    #[must_use]
    pub const fn new(settings: SecuritySettings) -> Self {
        Self { settings, admission: None }
    }

    /// Adds a check: a peer is admitted only if `admits` returns `true` for its identity and
    /// address. It runs once per handshake, on the thread that receives packets, and must not
    /// block.
    #[must_use]
    pub fn admit(
        mut self,
        admits: impl Fn(&Identity, SocketAddr) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.admission = Some(Arc::new(admits));
        self
    }

    /// Returns the settings.
    #[must_use]
    pub const fn settings(&self) -> &SecuritySettings {
        &self.settings
    }

    /// Returns whether calls to peers on this host may go through shared memory.
    #[must_use]
    pub fn allows_memory(&self) -> bool {
        self.settings.plaintext == Plaintext::LocalOnly
    }

    /// Reads the files and returns a negotiator with their credentials.
    ///
    /// # Errors
    ///
    /// [`CredentialsError`].
    pub fn negotiator(&self) -> Result<Arc<dyn Negotiator>, CredentialsError> {
        let credentials = self.settings.credentials()?;
        let trust = Trust { allow: self.settings.allow.clone(), admission: self.admission.clone() };
        match TlsNegotiator::new(&credentials, trust, self.settings.verify_address) {
            Ok(negotiator) => Ok(Arc::new(negotiator)),
            Err(failure) => Err(CredentialsError::Library { failure }),
        }
    }

    /// Rereads the files if they have changed since `stamp`, and updates it. Returns `None` if they
    /// have not.
    pub fn reload(
        &self,
        stamp: &mut Stamp,
    ) -> Option<Result<Arc<dyn Negotiator>, CredentialsError>> {
        let present = self.settings.stamp();
        if *stamp == present {
            return None;
        }
        *stamp = present;
        Some(self.negotiator())
    }

    /// Returns the present state of the files, for [`Security::reload`].
    #[must_use]
    pub fn stamp(&self) -> Stamp {
        self.settings.stamp()
    }
}
