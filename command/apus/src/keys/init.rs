//! `apus keys init`: the CA of a cluster, and the keys of this host.

use std::path::PathBuf;

use clap::Args;

use super::authority::{Authority, create_folder, write_secret};
use super::digits::hex;
use crate::sealing::folder;
use apus_command_line::failure::Failure;
use apus_command_line::output;

/// Make the certificate authority of a cluster, and the keys of this host
///
/// The folder then has `cluster.key` and `cluster.pem` (the CA), and `host.key` and `host.pem`.
/// With --secret it has `secret` instead, 32 random bytes that all hosts of the cluster share:
/// simpler, and any host that has it can pass for every other one.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus keys init
  apus keys init --cluster prod --dir keys
  apus keys init --secret --dir keys")]
pub(super) struct InitArguments {
    /// Name of the cluster, the first part of all identities: spiffe://NAME/HOST
    #[arg(long, value_name = "NAME", default_value = "cluster")]
    cluster: String,
    /// Folder for the files [default: the variable APUS_KEYS, /etc/apus/keys for root,
    /// ~/.config/apus/keys]
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
    /// Days of validity of the CA; the host's certificate ends after a year at the latest
    #[arg(long, value_name = "DAYS", default_value_t = 3650, value_parser = clap::value_parser!(u32).range(1..=36_500))]
    days: u32,
    /// Make a secret for the whole cluster instead of a CA
    #[arg(long)]
    secret: bool,
}

/// Days of validity of a host's certificate.
pub(super) const HOST_DAYS: u32 = 365;

/// Returns a secret as a line of hexadecimal digits. Readers strip a trailing newline as an
/// editor's addition, and a random byte may be a newline.
fn in_text(secret: &[u8]) -> String {
    hex(secret) + "\n"
}

pub(super) fn run(arguments: &InitArguments) -> Result<(), Failure> {
    let folder = folder(arguments.dir.as_ref())?;
    create_folder(&folder)?;
    if arguments.secret {
        let path = folder.join("secret");
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).map_err(|error| Failure::of("draw a secret", &error))?;
        write_secret(&path, in_text(&secret).as_bytes())?;
        return output::line(&format!(
            "wrote {}\nCopy it to the other hosts, and use it there and here with\n  [security]\n  mode = \"secret\"\n  \
             secret = \"{}\"",
            path.display(),
            path.display()
        ));
    }
    let authority = Authority::create(&folder, &arguments.cluster, arguments.days)?;
    let name = host_name();
    authority.issue(&folder, &name, &[], HOST_DAYS.min(arguments.days))?;
    output::line(&format!(
        "{}: the CA of `{}`, and the keys of spiffe://{}/{name}\nNext:\n  apus serve --sealed 127.0.0.1:4000\n  apus call \
         --sealed 127.0.0.1:4000\n  apus keys issue NAME --out FOLDER    for another host",
        folder.display(),
        arguments.cluster,
        arguments.cluster,
    ))
}

/// Returns the name of this host, with `-` for characters not allowed in identities.
fn host_name() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    let name: String = name.chars().map(|c| if is_plain(c) { c } else { '-' }).collect();
    if name.is_empty() { "host".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_whose_last_byte_is_a_line_end_keeps_its_length() {
        let secret = [[1; 31].as_slice(), b"\n"].concat();
        let text = in_text(&secret);
        assert_eq!(text.trim_end().len(), 64);
        assert!(text.ends_with("0a\n"));
    }
}
