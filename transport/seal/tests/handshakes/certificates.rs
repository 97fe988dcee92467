//! A small CA.

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, SanType, date_time_ymd};
use std::fs;
use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use apus_seal::tls::{Credentials, TlsNegotiator, Trust};
use std::sync::Arc;

/// A CA, and the folder with its files.
pub(crate) struct Ca {
    pub(crate) folder: tempfile::TempDir,
    issuer: Issuer<'static, KeyPair>,
}

impl Ca {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        fs::write(folder.path().join("ca.pem"), certificate.pem()).unwrap();
        Self { folder, issuer: Issuer::new(params, key) }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Issues a certificate with this name; `change` may modify its parameters.
    pub(crate) fn issue(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) {
        let mut params = CertificateParams::default();
        let uri = format!("spiffe://test/{name}").try_into().unwrap();
        params.subject_alt_names.push(SanType::URI(uri));
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        fs::write(self.path(&format!("{name}.pem")), certificate.pem()).unwrap();
        write_secret(&self.path(&format!("{name}.key")), key.serialize_pem().as_bytes());
    }

    pub(crate) fn credentials(&self, name: &str) -> Credentials {
        let (own, key) = (self.path(&format!("{name}.pem")), self.path(&format!("{name}.key")));
        Credentials::certificates(&own, &key, &self.path("ca.pem"), None).unwrap()
    }

    /// Returns a negotiator with a new certificate of this name, which admits all peers of this CA.
    pub(crate) fn negotiator(&self, name: &str) -> Arc<TlsNegotiator> {
        self.issue(name, |_| {});
        negotiator(&self.credentials(name))
    }
}

pub(crate) fn negotiator(credentials: &Credentials) -> Arc<TlsNegotiator> {
    Arc::new(TlsNegotiator::new(credentials, Trust::default(), false).unwrap())
}

pub(crate) fn write_secret(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

pub(crate) fn expire(params: &mut CertificateParams) {
    params.not_before = date_time_ymd(2001, 1, 1);
    params.not_after = date_time_ymd(2002, 1, 1);
}

pub(crate) fn begin_later(params: &mut CertificateParams) {
    params.not_before = date_time_ymd(2900, 1, 1);
    params.not_after = date_time_ymd(2901, 1, 1);
}

pub(crate) fn name_address(params: &mut CertificateParams, address: IpAddr) {
    params.subject_alt_names.push(SanType::IpAddress(address));
}
