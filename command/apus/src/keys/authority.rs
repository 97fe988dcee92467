//! The certificate authority of a cluster, and the certificates of its hosts.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::net::IpAddr;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, SanType,
};

use apus_command_line::failure::Failure;

/// Backdating of certificates: clocks within a cluster differ by less.
const CLOCK_DIFFERENCE: Duration = Duration::from_secs(3600);

/// A day.
const DAY: Duration = Duration::from_secs(86_400);

/// A CA that can issue certificates.
pub(super) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: String,
    /// Its name, the trust domain of SPIFFE ids.
    pub(super) cluster: String,
}

impl Authority {
    /// Makes a CA of this name, valid for `days`, and writes its files into `folder`.
    pub(super) fn create(folder: &Path, cluster: &str, days: u32) -> Result<Self, Failure> {
        let mut params = params(cluster, days)?;
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().map_err(|error| Failure::of("make a key", &error))?;
        let signed = params.self_signed(&key);
        let certificate = signed.map_err(|error| Failure::of("make the CA", &error))?.pem();
        write_secret(&folder.join("cluster.key"), key.serialize_pem().as_bytes())?;
        write_public(&folder.join("cluster.pem"), certificate.as_bytes())?;
        let issuer = Issuer::new(params, key);
        Ok(Self { issuer, certificate, cluster: cluster.to_owned() })
    }

    /// Reads the CA in `folder`.
    pub(super) fn read(folder: &Path) -> Result<Self, Failure> {
        let (pem, key) = (folder.join("cluster.pem"), folder.join("cluster.key"));
        let read = |path: &Path| {
            fs::read_to_string(path).map_err(|error| {
                let help =
                    "`apus keys init` makes a CA; it stays on the host that issues certificates.";
                Failure::Work(format!("read {}: {error}\n{help}", path.display()))
            })
        };
        let (certificate, secret) = (read(&pem)?, read(&key)?);
        apus::security::check_permissions(&key)
            .map_err(|error| Failure::Work(error.to_string()))?;
        let names = super::show::names(&certificate);
        let uri = names.iter().find_map(|name| name.strip_prefix("spiffe://"));
        let cluster = uri.unwrap_or("cluster").to_owned();
        let key =
            KeyPair::from_pem(&secret).map_err(|error| Failure::of("read the CA's key", &error))?;
        let issuer = Issuer::new(params(&cluster, 1)?, key);
        Ok(Self { issuer, certificate, cluster })
    }

    /// Issues a certificate for the host `name` with these addresses, valid for `days`, and writes
    /// the host's files into `folder`.
    pub(super) fn issue(
        &self,
        folder: &Path,
        name: &str,
        addresses: &[IpAddr],
        days: u32,
    ) -> Result<(), Failure> {
        let mut params = params(name, days)?;
        params.subject_alt_names = vec![uri(&format!("spiffe://{}/{name}", self.cluster))?];
        params
            .subject_alt_names
            .extend(addresses.iter().map(|address| SanType::IpAddress(*address)));
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().map_err(|error| Failure::of("make a key", &error))?;
        let signed = params.signed_by(&key, &self.issuer);
        let certificate = signed.map_err(|error| Failure::of("issue a certificate", &error))?;
        create_folder(folder)?;
        write_secret(&folder.join("host.key"), key.serialize_pem().as_bytes())?;
        write_public(&folder.join("host.pem"), certificate.pem().as_bytes())?;
        let ca = folder.join("cluster.pem");
        if !ca.exists() {
            write_public(&ca, self.certificate.as_bytes())?;
        }
        Ok(())
    }
}

fn uri(text: &str) -> Result<SanType, Failure> {
    let text = text.try_into().map_err(|_| Failure::Argument {
        argument: "NAME".to_owned(),
        problem: format!("`{text}` is no URI; use letters, digits, `-`, `.` and `/`, such as db-1"),
    })?;
    Ok(SanType::URI(text))
}

fn params(name: &str, days: u32) -> Result<CertificateParams, Failure> {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.subject_alt_names = vec![uri(&format!("spiffe://{name}"))?];
    let now = SystemTime::now();
    params.not_before = (now - CLOCK_DIFFERENCE).into();
    params.not_after = (now + DAY * days).into();
    Ok(params)
}

/// Creates a folder readable only by its owner, unless it exists.
pub(super) fn create_folder(folder: &Path) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::Work(format!("make {}: {error}", folder.display()));
    if !folder.exists() {
        fs::create_dir_all(folder).map_err(failed)?;
        fs::set_permissions(folder, Permissions::from_mode(0o700)).map_err(failed)?;
    }
    Ok(())
}

/// Writes a new file readable only by its owner.
pub(super) fn write_secret(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    write(path, bytes, 0o600)
}

fn write_public(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    write(path, bytes, 0o644)
}

fn write(path: &Path, bytes: &[u8], mode: u32) -> Result<(), Failure> {
    let open = OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
    let written =
        open.and_then(|mut file: File| file.write_all(bytes).and_then(|()| file.sync_all()));
    written.map_err(|error| {
        let help = match error.kind() {
            io::ErrorKind::AlreadyExists => {
                "\nA key is never overwritten: move the old one away, or name another folder."
            }
            _ => "",
        };
        Failure::Work(format!("write {}: {error}{help}", path.display()))
    })
}
