//! Configuration checks: values of a configuration file that no other check compares with this
//! host.

use std::fs;
use std::path::{Path, PathBuf};

use ::apus::{Endpoint, Engine, Settings};

use super::finding::Finding;
use apus_measure::machine;

/// Checks the configuration; nothing is reported about the defaults.
pub(super) fn check(settings: &Settings) -> Vec<Finding> {
    if *settings == Settings::default() {
        return Vec::new();
    }
    let mut findings = vec![opened(settings)];
    findings.extend(engine_cpus(settings, &machine::allowed()));
    findings.extend(icmp_errors(settings));
    findings.extend(trace_files(settings));
    findings
}

/// Opens an endpoint with these settings.
fn opened(settings: &Settings) -> Finding {
    const CHECK: &str = "configuration";
    // The doctor changes nothing: it joins no group and writes no traces.
    let settings = Settings { host_group: None, trace: Default::default(), ..settings.clone() };
    match Endpoint::builder().settings(&settings).observable(false).client() {
        Ok(_) => Finding::ok(CHECK, "an endpoint with this configuration can be opened"),
        Err(error) => {
            let fact = format!("an endpoint with this configuration cannot be opened: {error}");
            Finding::error(CHECK, fact)
                .because("Every program with this file ends with this error.")
                .fix(["apus doctor  # without the file: whether the host refuses all endpoints"])
        }
    }
}

/// Reports CPUs of dedicated engines that this process may not use.
fn engine_cpus(settings: &Settings, allowed: &[usize]) -> Option<Finding> {
    let Some(Engine::Dedicated { cpu: Some(first) }) = settings.engine else { return None };
    let cpus = first..first + super::shards(settings);
    let missing: Vec<_> =
        cpus.filter(|cpu| !allowed.contains(cpu)).map(|cpu| cpu.to_string()).collect();
    if missing.is_empty() {
        return None;
    }
    let fact = format!(
        "engine = \"dedicated={first}\" needs CPU {}, which this process may not use",
        missing.join(", ")
    );
    let finding = Finding::error("engine-cpus", fact)
        .because("The engine's thread cannot be pinned: it runs where the system puts it, or not at all.")
        .fix([
            format!("taskset -cp $$  # the permitted CPUs; here {}", list(allowed)),
            "engine = \"dedicated\"  # alternatively, in the configuration of apus: any CPU".to_owned(),
        ]);
    Some(finding)
}

fn list(cpus: &[usize]) -> String {
    cpus.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

/// Reports a configuration that ignores ICMP errors.
fn icmp_errors(settings: &Settings) -> Option<Finding> {
    (settings.udp.reports == Some(false)).then(|| {
        Finding::warning("icmp-errors", "the configuration ignores ICMP errors (reports = false)")
            .because("A closed port or an unreachable host is then noticed by its silence alone.")
            .fix(["reports = true  # under [udp] in the configuration of apus"])
    })
}

/// Reports trace files that cannot be written, and triggers without files.
fn trace_files(settings: &Settings) -> Option<Finding> {
    const CHECK: &str = "trace-files";
    let trace = &settings.trace;
    let folder = trace.folder.as_deref().unwrap_or_default();
    let triggers = [trace.restart, trace.lost_packet, trace.obey_peers];
    let has_trigger =
        triggers.contains(&Some(true)) || trace.slow_rpc_usecs.is_some_and(|usecs| usecs > 0);
    if folder.is_empty() {
        return has_trigger.then(|| {
            Finding::note(
                CHECK,
                "triggers freeze the trace, and no file is written (folder = \"\")",
            )
            .because("The trace stays frozen after the first trigger, until `apus trace resume`.")
            .fix(["folder = \"/var/tmp/apus\"  # under [trace] in the configuration of apus"])
        });
    }
    let place = existing(Path::new(folder));
    Some(match tempfile::tempfile_in(&place) {
        Ok(_) => Finding::ok(CHECK, format!("traces can be written to {folder}")),
        Err(error) => {
            let fact = format!("no trace can be written to {folder}: {}: {error}", place.display());
            Finding::warning(CHECK, fact)
                .because(
                    "A trigger freezes the trace, and its records are lost when the process ends.",
                )
                .fix([format!(
                    "install -d -o $(id -un) {folder}  # as root: a folder of this user"
                )])
        }
    })
}

/// Returns the folder, or the nearest existing ancestor, where it would be created.
fn existing(folder: &Path) -> PathBuf {
    let found = folder.ancestors().find(|path| fs::symlink_metadata(path).is_ok());
    let found = found.filter(|path| !path.as_os_str().is_empty());
    found.map_or_else(|| PathBuf::from("."), Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Severity;

    fn settings(text: &str) -> Settings {
        text.parse().unwrap()
    }

    #[test]
    fn the_defaults_need_no_finding() {
        assert_eq!(check(&Settings::default()), []);
    }

    #[test]
    fn a_configuration_that_opens_an_endpoint_is_in_order() {
        let finding = opened(&settings("poll = 'block'\nshards = 2\n[udp]\nipv6 = false\n"));
        assert_eq!(finding.severity, Severity::Ok, "{finding:?}");
    }

    #[test]
    fn cpus_that_are_missing_are_named() {
        let pinned = settings("engine = 'dedicated=2'\nshards = 3\n");
        assert_eq!(engine_cpus(&pinned, &[0, 1, 2, 3, 4]), None);
        let finding = engine_cpus(&pinned, &[0, 1, 2, 3]).unwrap();
        assert_eq!(finding.severity, Severity::Error);
        assert!(finding.fact.contains("needs CPU 4,"), "{finding:?}");
        assert_eq!(engine_cpus(&settings("engine = 'dedicated'"), &[]), None);
    }

    #[test]
    fn ignored_icmp_errors_are_a_warning() {
        assert_eq!(icmp_errors(&settings("[udp]\nreports = true")), None);
        let finding = icmp_errors(&settings("[udp]\nreports = false")).unwrap();
        assert_eq!(finding.severity, Severity::Warning);
    }

    #[test]
    fn trace_files_need_a_folder_that_can_be_written() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("file");
        fs::write(&file, "").unwrap();
        let folder = |path: PathBuf| settings(&format!("[trace]\nfolder = '{}'", path.display()));
        let severity = |path| trace_files(&folder(path)).unwrap().severity;
        assert_eq!(severity(place.path().join("new/folder")), Severity::Ok);
        assert_eq!(severity(file.join("traces")), Severity::Warning);
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1, "nothing is created");
        assert_eq!(trace_files(&settings("poll = 'block'")), None);
        let frozen = trace_files(&settings("[trace]\nslow_rpc_usecs = 1000")).unwrap();
        assert_eq!(frozen.severity, Severity::Note);
    }
}
