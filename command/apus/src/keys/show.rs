//! `apus keys show`: content of a folder of keys.

use std::path::{Path, PathBuf};

use apus::security::{
    Credentials, certificate_validity, check_permissions, describe_certificate, fingerprint_of,
    pem_certificates,
};
use clap::Args;
use serde_json::{Value, json};

use super::digits::hex;
use crate::sealing::{folder, host_settings};
use apus_command_line::failure::Failure;
use apus_command_line::output;

/// Show names, fingerprints and dates of the certificates in a folder, and whether its keys are
/// safe
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus keys show
  apus keys show db-1-keys --json")]
pub(super) struct ShowArguments {
    /// Folder of keys [default: the one of `apus keys init`]
    #[arg(value_name = "FOLDER")]
    folder: Option<PathBuf>,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

/// A file of the folder, in words.
struct Shown {
    file: &'static str,
    /// Name and value of each of its properties.
    properties: Vec<(&'static str, String)>,
    /// Its fault.
    fault: Option<String>,
}

pub(super) fn run(arguments: &ShowArguments) -> Result<(), Failure> {
    let folder = folder(arguments.folder.as_ref())?;
    let files = ["cluster.pem", "cluster.key", "host.pem", "host.key", "secret"];
    let shown: Vec<Shown> = files
        .into_iter()
        .filter(|file| folder.join(file).exists())
        .map(|file| show(&folder, file))
        .collect();
    if shown.is_empty() {
        let help = "`apus keys init` makes the keys of a small cluster.";
        return Err(Failure::Work(format!("there are no keys in {}\n{help}", folder.display())));
    }
    let mut faults: Vec<String> = shown.iter().filter_map(|shown| shown.fault.clone()).collect();
    if folder.join("host.pem").exists()
        && let Err(error) = host_settings(&folder).credentials()
        && !faults.contains(&error.to_string())
    {
        faults.push(error.to_string());
    }
    if arguments.json {
        let files = shown.iter().map(|shown| {
            let properties = shown.properties.iter();
            let mut object: serde_json::Map<String, Value> =
                properties.map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
            object.insert("file".to_owned(), json!(shown.file));
            Value::Object(object)
        });
        let files: Vec<Value> = files.collect();
        output::line(&json!({ "folder": folder, "files": files, "faults": faults }).to_string())?;
    } else {
        output::line(&folder.display().to_string())?;
        for Shown { file, properties, .. } in &shown {
            output::line(&format!("  {file}"))?;
            for (name, value) in properties {
                output::line(&format!("    {name:<12} {value}"))?;
            }
        }
        faults.iter().try_for_each(|fault| output::line(&format!("! {fault}")))?;
    }
    if faults.is_empty() { Ok(()) } else { Err(Failure::Found(1)) }
}

fn show(folder: &Path, file: &'static str) -> Shown {
    let path = folder.join(file);
    if file.ends_with(".pem") {
        return show_certificate(folder, file, &path);
    }
    let mut properties = Vec::new();
    let fault = check_permissions(&path).err().map(|error| error.to_string());
    let mode = if fault.is_none() { "owner only" } else { "others may read it" };
    properties.push(("permissions", mode.to_owned()));
    if file == "secret"
        && let Ok(credentials) = Credentials::secret(&path)
    {
        properties.push(("fingerprint", hex(&credentials.fingerprint())));
    }
    Shown { file, properties, fault }
}

fn show_certificate(folder: &Path, file: &'static str, path: &Path) -> Shown {
    let mut properties = Vec::new();
    let chain = match pem_certificates(path) {
        Ok(chain) => chain,
        Err(error) => return Shown { file, properties, fault: Some(error.to_string()) },
    };
    let own = &chain[0];
    let names = describe_certificate(own).unwrap_or_default();
    properties.push(("names", names.join(" ")));
    properties.push(("fingerprint", hex(&fingerprint_of(own))));
    let mut fault = None;
    if file == "host.pem"
        && let Ok(roots) = pem_certificates(&folder.join("cluster.pem"))
    {
        match certificate_validity(&chain, &roots) {
            Ok((from, to)) => {
                properties.push(("valid", format!("{} to {}", date(from), date(to))));
                let now = now();
                if now > to {
                    fault = Some(format!("{file} has expired; `apus keys issue` makes a new one"));
                } else if now < from {
                    fault = Some(format!("{file} is not valid yet; check the clock of this host"));
                }
            }
            Err(cause) => {
                fault = Some(format!("{file} does not belong to cluster.pem: {}", cause.name()));
            }
        }
    }
    Shown { file, properties, fault }
}

/// Returns the names in the first certificate of a PEM text.
pub(super) fn names(pem: &str) -> Vec<String> {
    let first = apus::security::certificates_in(pem.as_bytes()).into_iter().next();
    first.and_then(|der| describe_certificate(&der)).unwrap_or_default()
}

fn now() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |now| now.as_secs())
}

/// Returns the day of a time in seconds since 1970, as `2026-11-25`.
fn date(seconds: u64) -> String {
    let day = time::OffsetDateTime::from_unix_timestamp(seconds.cast_signed());
    day.map_or_else(|_| "?".to_owned(), |day| day.date().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(date(0), "1970-01-01");
        assert_eq!(date(1_795_651_200), "2026-11-26");
    }
}
