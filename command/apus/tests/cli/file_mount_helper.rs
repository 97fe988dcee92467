//! mount(8) and fstab with `mount -t fuse.apus`: docs/fs/mounting.md.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::harness::{Service, text};

/// Installs the helper in the folder searched by mount(8), in a separate mount namespace, and
/// mounts as administrators do.
const SCRIPT: &str = r#"
fail() { echo "$1" >&2; exit 1; }
mount -t overlay overlay -o lowerdir="$HELPER":/usr/sbin /usr/sbin 2>/dev/null && test -x /sbin/mount.fuse.apus || exit 77

mount --fake -t fuse.apus "$ADDRESS" "$HERE" || fail 'mount --fake fails'
! mountpoint -q "$HERE" || fail 'mount --fake has mounted'

mount -t fuse.apus "$ADDRESS" "$HERE" -o lost=error=60,lost-changes="$FOLDER/lost" || fail 'mount fails'
test "$(findmnt -n -o FSTYPE,SOURCE "$HERE" | tr -s ' ')" = "fuse.apus $ADDRESS" || fail "$(findmnt "$HERE")"
test "$(cat "$HERE/song")" = la || fail 'the directory is another one'
echo new > "$HERE/new" || fail 'nothing can be written'
"$APUS" fs umount "$HERE" || fail 'apus fs umount fails'
! mountpoint -q "$HERE" || fail 'apus fs umount leaves it mounted'

echo "$ADDRESS $HERE fuse.apus _netdev,nofail,x-systemd.automount,lost=wait,ro 0 0" > "$FOLDER/fstab"
mount -T "$FOLDER/fstab" "$HERE" || fail 'mount does not take its line of fstab'
test "$(cat "$HERE/new")" = new || fail 'a change is absent'
! touch "$HERE/other" 2>/dev/null || fail 'it was to be read-only'
umount "$HERE" || fail 'umount fails'

! mount -t fuse.apus "$ADDRESS" "$HERE" -o noexec 2> "$FOLDER/refused" || fail 'noexec is taken'
grep -q noexec "$FOLDER/refused" || fail "$(cat "$FOLDER/refused")"
! mountpoint -q "$HERE" || fail 'it is mounted without noexec'
"#;

#[test]
fn mount_and_fstab_know_the_type() {
    if !Path::new("/dev/fuse").exists() || !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: only root mounts with mount(8)");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for name in ["served", "here", "helper"] {
        fs::create_dir(path(name)).unwrap();
    }
    fs::write(path("served/song"), "la").unwrap();
    symlink(env!("CARGO_BIN_EXE_apus"), path("helper/mount.fuse.apus")).unwrap();
    let service = Service::start_files(&[&path("served")]);
    let mut shell = Command::new("unshare");
    shell.args(["--mount", "sh", "-uc", SCRIPT]);
    shell.env("HELPER", path("helper")).env("HERE", path("here")).env("FOLDER", folder.path());
    shell.env("ADDRESS", service.address()).env("APUS", env!("CARGO_BIN_EXE_apus"));
    let output = match shell.output() {
        Ok(output) if output.status.code() != Some(77) => output,
        _ => {
            eprintln!("SKIPPED: no mount namespace in which /usr/sbin has one file more");
            return;
        }
    };
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    assert_eq!(fs::read(path("served/new")).unwrap(), b"new\n");
}
