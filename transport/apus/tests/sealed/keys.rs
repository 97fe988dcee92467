//! Keys of endpoints: a CA, a secret.

use apus::security::{Plaintext, Security, SecurityMode, SecuritySettings};
use apus::{Config, Endpoint, EndpointBuilder};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, SanType};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

/// Returns a builder of endpoints whose peers may be silent for a minute, in place of a second:
/// many handshakes at once take longer than that on a busy machine.
pub(crate) fn patient() -> EndpointBuilder {
    let config = Config::builder().timeout_usecs(60_000_000);
    Endpoint::builder().config(config.build().unwrap())
}

pub(crate) fn write_secret(path: &Path, bytes: &[u8]) {
    // A new file each time: a watcher never sees half of it.
    let new = path.with_extension("new");
    fs::write(&new, bytes).unwrap();
    fs::set_permissions(&new, fs::Permissions::from_mode(0o600)).unwrap();
    fs::rename(&new, path).unwrap();
}

/// A folder with the secret of a cluster.
pub(crate) struct Cluster(tempfile::TempDir);

impl Cluster {
    pub(crate) fn new(byte: u8) -> Self {
        let folder = tempfile::tempdir().unwrap();
        write_secret(&folder.path().join("secret"), &[byte; 32]);
        Self(folder)
    }

    pub(crate) fn security(&self) -> Security {
        Security::new(SecuritySettings {
            mode: SecurityMode::Secret,
            secret: Some(self.0.path().join("secret")),
            ..SecuritySettings::default()
        })
    }

    pub(crate) fn builder(&self) -> EndpointBuilder {
        patient().security(self.security())
    }
}

/// A folder with the files of a CA.
pub(crate) struct Ca {
    folder: tempfile::TempDir,
    issuer: Issuer<'static, KeyPair>,
}

impl Ca {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        fs::write(folder.path().join("ca.pem"), params.self_signed(&key).unwrap().pem()).unwrap();
        Self { folder, issuer: Issuer::new(params, key) }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn issue(&self, name: &str) {
        let mut params = CertificateParams::default();
        let uri = format!("spiffe://test/{name}").try_into().unwrap();
        params.subject_alt_names.push(SanType::URI(uri));
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        // The key first: the pair is complete when the certificate is there.
        write_secret(&self.path(&format!("{name}.key")), key.serialize_pem().as_bytes());
        write_secret(&self.path(&format!("{name}.pem")), certificate.pem().as_bytes());
    }

    pub(crate) fn settings(&self, name: &str) -> SecuritySettings {
        SecuritySettings {
            certificate: Some(self.path(&format!("{name}.pem"))),
            key: Some(self.path(&format!("{name}.key"))),
            ca: Some(self.path("ca.pem")),
            plaintext: Plaintext::Refuse,
            ..SecuritySettings::default()
        }
    }

    pub(crate) fn builder(&self, name: &str) -> EndpointBuilder {
        self.issue(name);
        patient().security(Security::new(self.settings(name)))
    }
}

/// Serves until the endpoint is shut down: echoes the request, with the client's name in front if
/// it has a SPIFFE id.
pub(crate) fn serve(endpoint: &Arc<Endpoint>) -> JoinHandle<()> {
    let endpoint = endpoint.clone();
    thread::spawn(move || {
        while let Ok(mut request) = endpoint.recv_request() {
            let identity = request.peer_identity();
            let name = identity.as_ref().and_then(|it| it.spiffe_id()).unwrap_or_default();
            let mut reply = name.as_bytes().to_vec();
            reply.extend_from_slice(&request.take_payload());
            let _ = request.reply(reply);
        }
    })
}

/// Returns a counter of sealing.
pub(crate) fn counter(endpoint: &Endpoint, name: &str) -> u64 {
    let all = endpoint.metrics().driver;
    all.iter().find(|(known, _)| *known == name).expect("a counter").1
}
