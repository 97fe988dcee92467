//! `apus keys issue`: the keys of another host.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::Args;

use super::authority::Authority;
use super::init::HOST_DAYS;
use crate::sealing::folder;
use apus_command_line::failure::Failure;
use apus_command_line::output;

/// Issue a certificate for a host of the cluster, with a new key
///
/// The folder then has `host.key`, `host.pem` and `cluster.pem`: all that the host needs. Copy it
/// there and remove it here. To renew a host's certificate, issue it into a new folder and rename
/// its files into the place of the old ones; running services take them within two seconds.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus keys issue db-1 --out db-1-keys
  apus keys issue billing/1 --address 10.0.0.7 --days 90 --out billing-1")]
pub(super) struct IssueArguments {
    /// Name of the host or service; its identity is spiffe://CLUSTER/NAME
    #[arg(value_name = "NAME")]
    name: String,
    /// Folder for the host's files [default: NAME, with `-` for `/`]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Address of the host, for clients with `verify_address`; may be given several times
    #[arg(long, value_name = "IP")]
    address: Vec<IpAddr>,
    /// Days of validity of the certificate
    #[arg(long, value_name = "DAYS", default_value_t = HOST_DAYS, value_parser = clap::value_parser!(u32).range(1..=36_500))]
    days: u32,
    /// Folder of the CA [default: the one of `apus keys init`]
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
}

pub(super) fn run(arguments: &IssueArguments) -> Result<(), Failure> {
    let authority = Authority::read(&folder(arguments.dir.as_ref())?)?;
    let IssueArguments { name, address, days, .. } = arguments;
    let out = arguments.out.clone().unwrap_or_else(|| name.replace('/', "-").into());
    authority.issue(&out, name, address, *days)?;
    let (out, cluster) = (out.display(), &authority.cluster);
    output::line(&format!(
        "{out}: the keys of spiffe://{cluster}/{name}, for {days} days\nNext: copy {out} to the host, and there\n  apus serve \
         --sealed=FOLDER ADDR"
    ))
}
