//! Cost of adding a peer to an empty program: crates, and the time of a clean build.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use apus_report::result::{Figure, Row, Table, short};
use apus_testbed::error::{Doing, Error};
use serde_json::json;
use toml::{Table as Toml, Value};

use crate::programs::Program;

/// Name of the work.
pub(crate) const NAME: &str = "build";

/// Footprint of a peer's dependencies.
struct Footprint<'a> {
    program: &'a Program,
    dependencies: Toml,
    /// Crates, all together.
    crates: usize,
    /// Time of a clean build.
    time: Option<Duration>,
}

/// Returns the rows, and the table of all peers; peers whose dependencies cannot be built are
/// reported on standard error. Builds are timed if `timed` is set.
pub(crate) fn found(programs: &[Program], timed: bool) -> Result<(Vec<Row>, Option<Table>), Error> {
    let mut found: Vec<Footprint<'_>> = Vec::new();
    for program in programs {
        match measure(program, timed, &found) {
            Ok(footprint) => found.push(footprint),
            Err(error) => eprintln!("skipped: {NAME} of {}: {error}", program.about.name),
        }
    }
    let line = |it: &Footprint<'_>| {
        let time = it.time.map(|time| short(time.as_secs_f64()));
        let crates = it.crates.to_string();
        [it.program.about.name.clone(), crates].into_iter().chain(time).collect()
    };
    let header = ["", "crates", "clean build, s"];
    let header = &header[..if timed { 3 } else { 2 }];
    let title = "dependencies of a program that has nothing else";
    let table = (!found.is_empty())
        .then(|| Table::new(title, header.iter().copied(), found.iter().map(line).collect()));
    let row = |it: &Footprint<'_>| {
        let time = it.time.map(|time| Figure::over(&[time.as_secs_f64()], |seconds| *seconds));
        Row::new(&it.program.about.name)
            .with("work", Figure::Detail(json!(NAME)))
            .with("crates", Figure::Count(it.crates as u64))
            .with_known("build_s", time)
    };
    Ok((found.iter().map(row).collect(), table))
}

/// Measures a peer, unless a peer with the same dependencies was measured before.
fn measure<'a>(
    program: &'a Program,
    timed: bool,
    known: &[Footprint<'a>],
) -> Result<Footprint<'a>, Error> {
    let dependencies = dependencies(&program.about.name)?;
    if let Some(same) = known.iter().find(|it| it.dependencies == dependencies) {
        return Ok(Footprint { program, dependencies, ..*same });
    }
    let empty = Empty::with(&dependencies)?;
    let crates = empty.crates()?;
    if timed {
        eprintln!("building the dependencies of {}: {crates} crates", program.about.name);
    }
    let time = timed.then(|| empty.build()).transpose()?;
    Ok(Footprint { program, dependencies, crates, time })
}

/// The workspace of all peers.
fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(file: &Path) -> Result<Toml, Error> {
    let text = fs::read_to_string(file).doing(|| format!("read {}", file.display()))?;
    text.parse().map_err(|error| Error::Peer(format!("{}: {error}", file.display())))
}

/// Returns the dependencies of a peer's program, except for the dependencies common to all
/// programs.
fn dependencies(peer: &str) -> Result<Toml, Error> {
    let root = read(&workspace().join("Cargo.toml"))?;
    let folder = workspace().join("peers").join(peer);
    let manifest = read(&folder.join("Cargo.toml"))?;
    let mut all = Toml::new();
    for (name, value) in table(&manifest, "dependencies") {
        match name.strip_prefix("compare-") {
            Some("kit") => {}
            // Parts of another peer's program.
            Some(other) => all.extend(dependencies(other)?),
            None => {
                let shared = table(&table(&root, "workspace"), "dependencies");
                all.insert(name.clone(), whole(&value, shared.get(&name), &folder));
            }
        }
    }
    Ok(all)
}

fn table(of: &Toml, name: &str) -> Toml {
    of.get(name).and_then(Value::as_table).cloned().unwrap_or_default()
}

/// Returns a dependency merged with its workspace entry, and with an absolute path.
fn whole(own: &Value, shared: Option<&Value>, folder: &Path) -> Value {
    let Value::Table(own) = own else { return own.clone() };
    let mut whole = match (own.get("workspace"), shared) {
        (Some(_), Some(Value::Table(shared))) => shared.clone(),
        (Some(_), Some(version)) => [("version".to_owned(), version.clone())].into_iter().collect(),
        _ => Toml::new(),
    };
    for (key, value) in own.iter().filter(|(key, _)| *key != "workspace") {
        match (whole.get_mut(key), value) {
            (Some(Value::Array(features)), Value::Array(more)) => features.extend(more.clone()),
            (_, Value::String(path)) if key == "path" => {
                let path = folder.join(path).display().to_string();
                whole.insert(key.clone(), Value::String(path));
            }
            _ => {
                whole.insert(key.clone(), value.clone());
            }
        }
    }
    Value::Table(whole)
}

/// A program without code, in a separate folder.
struct Empty {
    folder: tempfile::TempDir,
}

impl Empty {
    fn with(dependencies: &Toml) -> Result<Self, Error> {
        let folder = tempfile::Builder::new().prefix("apus-compare-").tempdir();
        let folder = folder.doing(|| "make a folder for a program".to_owned())?;
        let package = [("name", "empty"), ("version", "0.0.0"), ("edition", "2024")];
        let package = package.map(|(key, value)| (key.to_owned(), value.into()));
        let package = package.into_iter().collect();
        let manifest: Toml = [
            ("package".to_owned(), Value::Table(package)),
            ("dependencies".to_owned(), Value::Table(dependencies.clone())),
            ("workspace".to_owned(), Value::Table(Toml::new())),
        ]
        .into_iter()
        .collect();
        let write = |name: &str, text: &str| {
            let file = folder.path().join(name);
            fs::write(&file, text).doing(|| format!("write {}", file.display()))
        };
        write("Cargo.toml", &manifest.to_string())?;
        // The compared versions. cargo drops unused entries.
        write("Cargo.lock", include_str!("../../Cargo.lock"))?;
        let source = folder.path().join("src");
        fs::create_dir(&source).doing(|| format!("make {}", source.display()))?;
        write("src/main.rs", "fn main() {}\n")?;
        Ok(Self { folder })
    }

    /// Runs cargo; returns its output.
    fn cargo(&self, arguments: &[&str]) -> Result<String, Error> {
        let mut cargo = Command::new("cargo");
        cargo.args(arguments).current_dir(self.folder.path());
        cargo.env("CARGO_TARGET_DIR", self.folder.path().join("target"));
        let output = cargo.output().doing(|| "run cargo".to_owned())?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(Error::Peer(format!("cargo {}: {}", arguments.join(" "), said.trim())))
    }

    /// Returns the number of crates compiled in addition to the empty crate.
    fn crates(&self) -> Result<usize, Error> {
        let tree =
            self.cargo(&["tree", "--edges", "normal,build", "--prefix", "none", "--no-dedupe"])?;
        let all: BTreeSet<&str> = tree.lines().filter(|line| !line.is_empty()).collect();
        Ok(all.len() - 1)
    }

    /// Returns the time of a clean build, excluding downloads.
    fn build(&self) -> Result<Duration, Error> {
        self.cargo(&["fetch"])?;
        let began = Instant::now();
        self.cargo(&["build", "--release", "--quiet"])?;
        Ok(began.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_all_programs_have_in_common_is_no_dependency_of_a_peer() {
        assert!(dependencies("tcp").unwrap().is_empty());
        let names = |peer: &str| dependencies(peer).unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(names("quinn"), ["bytes", "quinn", "tokio"]);
        assert!(names("tokio-rustls").contains(&"tokio-util".to_owned()), "that of the peer tokio");
        let apus = dependencies("apus-sealed").unwrap();
        let path = apus["apus"]["path"].as_str().unwrap();
        assert!(Path::new(path).join("Cargo.toml").exists(), "{path}");
    }

    #[test]
    fn features_of_the_workspace_and_of_the_peer_are_joined() {
        let own: Toml = "bytes = { workspace = true, features = ['serde'] }".parse().unwrap();
        let shared: Toml = "bytes = { version = '1', features = ['std'] }".parse().unwrap();
        let whole = whole(&own["bytes"], shared.get("bytes"), Path::new("/"));
        assert_eq!(whole["version"].as_str(), Some("1"));
        assert_eq!(whole["features"].as_array().unwrap().len(), 2);
        let version = "1".into();
        let alone = super::whole(
            &"workspace = true".parse::<Toml>().unwrap().into(),
            Some(&version),
            Path::new("/"),
        );
        assert_eq!(alone["version"].as_str(), Some("1"));
    }
}
