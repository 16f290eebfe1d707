//! The workloads: the layout of each source, the program in the mount, and its least requests.
//!
//! Trees are created once, always alike, and copied. The small tree has 2,100 small files in 100
//! directories. The git tree has 5,000 files in 100 directories, and two branches that differ in
//! 1,000 files.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::error::{Context, Result};
use crate::session::Session;

/// One workload.
pub struct Program {
    /// Name in the tables.
    pub name: &'static str,
    /// Its description.
    pub what: &'static str,
    /// Programs it needs.
    pub needs: &'static [&'static str],
    /// Whether it writes.
    pub writes: bool,
    /// The script that lays out the source, run inside it.
    pub prepare: &'static str,
    /// The script that runs inside the mount.
    pub run: &'static str,
    /// The least requests of any server, by kind.
    pub least: &'static [(&'static str, u64)],
}

/// Files of the small tree, its directories below the top, and all with the top.
const FILES: u64 = 2100;
const DIRECTORIES: u64 = 100;
const ALL: u64 = DIRECTORIES + 1;

/// Walking a tree: each directory is opened, read to its end in two requests, and closed.
const WALK: &[(&str, u64)] =
    &[("opendir", ALL), ("readdirplus", 2 * ALL), ("releasedir", ALL), ("lookup", 1)];

/// All workloads.
pub const PROGRAMS: [Program; 14] = [
    Program {
        name: "find",
        what: "sizes of 2,100 files in 100 directories, nothing known",
        needs: &[],
        writes: false,
        prepare: "cp -r $TREES/small .",
        run: "find small -printf %s",
        least: WALK,
    },
    Program {
        name: "find again",
        what: "the same ten times within a second or so",
        needs: &[],
        writes: false,
        prepare: "cp -r $TREES/small .",
        run: "for i in 1 2 3 4 5 6 7 8 9 10; do find small -printf %s; done",
        least: &[
            ("opendir", 10 * ALL),
            ("readdirplus", 2 * ALL),
            ("releasedir", 10 * ALL),
            ("lookup", 1),
        ],
    },
    Program {
        name: "du",
        what: "du -s of the same tree",
        needs: &[],
        writes: false,
        prepare: "cp -r $TREES/small .",
        run: "du -s small",
        least: WALK,
    },
    Program {
        name: "ls -lR",
        what: "ls -lR of the same tree",
        needs: &[],
        writes: false,
        prepare: "cp -r $TREES/small .",
        run: "ls -lR small",
        least: WALK,
    },
    Program {
        name: "read all",
        what: "every file of the same tree read once (tar c)",
        needs: &["tar"],
        writes: false,
        prepare: "cp -r $TREES/small .",
        run: "tar cf - small | cat",
        least: &[
            ("opendir", ALL),
            ("readdirplus", 2 * ALL),
            ("releasedir", ALL),
            ("lookup", 1),
            ("open", FILES),
            ("read", FILES),
            ("release", FILES),
        ],
    },
    Program {
        name: "cp -r",
        what: "2,100 small files copied within the mount",
        needs: &[],
        writes: true,
        prepare: "cp -r $TREES/small .",
        run: "cp -r --reflink=never small copy",
        least: &[
            ("opendir", ALL),
            ("readdirplus", 2 * ALL),
            ("releasedir", ALL),
            // Whether the copy is there, and each name in it.
            ("lookup", 2 + DIRECTORIES + FILES),
            ("mkdir", ALL),
            ("open", FILES),
            ("create", FILES),
            ("read", FILES),
            ("write", FILES),
            ("release", 2 * FILES),
        ],
    },
    Program {
        name: "tar x",
        what: "the same tree unpacked",
        needs: &["tar"],
        writes: true,
        prepare: "true",
        run: "tar xf $TREES/small.tar",
        least: &[
            ("lookup", ALL + FILES),
            ("mkdir", ALL),
            ("create", FILES),
            ("write", FILES),
            // The times of each; owner and mode, which tar also sets, are right already.
            ("setattr", ALL + FILES),
            ("release", FILES),
        ],
    },
    Program {
        name: "rsync",
        what: "rsync -a of the same tree into a copy",
        needs: &["rsync"],
        writes: true,
        prepare: "cp -r $TREES/small .",
        run: "rsync -a small/ copy",
        // Each file is written under another name, and renamed.
        least: &[
            ("opendir", ALL),
            ("readdirplus", 2 * ALL),
            ("releasedir", ALL),
            ("lookup", 2 + DIRECTORIES + 2 * FILES),
            ("mkdir", ALL),
            ("open", FILES),
            ("create", FILES),
            ("read", FILES),
            ("write", FILES),
            ("release", 2 * FILES),
            ("setattr", ALL + FILES),
            ("rename", FILES),
        ],
    },
    Program {
        name: "compile",
        what: "100 C files with ten headers, compiled and linked",
        needs: &["cc"],
        writes: true,
        prepare: "cp -r $TREES/c .",
        run: "cd c; cc -c *.c; cc -o program *.o; ./program",
        least: &[],
    },
    Program {
        name: "rm -r",
        what: "the same tree removed",
        needs: &[],
        writes: true,
        prepare: "cp -r $TREES/small .",
        run: "rm -r small",
        least: &[
            ("opendir", ALL),
            ("readdirplus", 2 * ALL),
            ("releasedir", ALL),
            ("lookup", 1),
            ("unlink", FILES),
            ("rmdir", ALL),
        ],
    },
    Program {
        name: "git status",
        what: "of 5,000 files, three times",
        needs: &["git"],
        writes: true,
        prepare: "cp -a $TREES/git .",
        run: "cd git; for i in 1 2 3; do git status --porcelain; done",
        least: &[],
    },
    Program {
        name: "git checkout",
        what: "another branch, of which 1,000 files differ",
        needs: &["git"],
        writes: true,
        prepare: "cp -a $TREES/git .",
        run: "cd git; git checkout -q other",
        least: &[],
    },
    Program {
        name: "maildir",
        what: "1,000 messages written below tmp and renamed to new",
        needs: &["perl"],
        writes: true,
        prepare: "mkdir tmp new",
        run: r#"perl -e 'for my $n (1 .. 1000) {
            open my $mail, ">", "tmp/$n" or die; print $mail "x" x 3000; close $mail or die;
            rename "tmp/$n", "new/$n" or die }'"#,
        least: &[
            ("lookup", 2 + 2 * 1000),
            ("create", 1000),
            ("write", 1000),
            ("release", 1000),
            ("rename", 1000),
        ],
    },
    Program {
        name: "sqlite",
        what: "300 inserts, each a transaction",
        needs: &["sqlite3"],
        writes: true,
        prepare: "true",
        run: r#"{ echo 'create table t (a integer, b text);'
            for i in $(seq 300); do echo "insert into t values ($i, 'a row of some length');"; done
            } | sqlite3 data.db"#,
        least: &[],
    },
];

/// Creates the trees that the workloads copy, once.
const MAKE: &str = r##"
mkdir small git c
perl -e '
    srand 1;
    for my $d (0 .. 99) {
        mkdir "small/$d" or die;
        for my $f (0 .. 20) {
            open my $file, ">", "small/$d/$f" or die;
            print $file chr(97 + int rand 26) x int(1000 + rand 7000);
        }
        mkdir "git/$d" or die;
        for my $f (0 .. 49) {
            open my $file, ">", "git/$d/$f.c" or die;
            print $file "int f_${d}_$f(void) { return $f; }\n" x 20;
        }
    }'
tar cf small.tar small
for h in $(seq 10); do echo "static inline int g$h(int x) { return x + $h; }" >c/h$h.h; done
for f in $(seq 100); do
    { for h in $(seq 10); do echo "#include \"h$h.h\""; done
      echo "int f$f(int x) { return g1(x) + g10(x) + $f; }"; } >c/f$f.c
done
echo 'int f100(int); int main(void) { return f100(0) == 111 ? 0 : 1; }' >c/main.c
cd git
git init -q -b main .
git config user.email nobody@example.org
git config user.name nobody
git config gc.auto 0
git add . && git commit -qm one
git checkout -qb other
for d in $(seq 0 19); do for f in $(seq 0 49); do echo "/* $d $f */" >>$d/$f.c; done; done
git commit -qam two
git checkout -q main
"##;

/// The folder of the trees.
pub fn trees(session: &Session) -> Result<PathBuf> {
    let folder = session.work.join("workload-trees");
    // The number changes with the contents of the trees.
    let mark = folder.join("complete.2");
    if mark.exists() {
        return Ok(folder);
    }
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).context(|| format!("cannot make {}", folder.display()))?;
    let mut make = Command::new("bash");
    make.args(["-euo", "pipefail", "-c", MAKE]).current_dir(&folder).env("HOME", &folder);
    let status = make.status().context(|| "cannot start bash".into())?;
    if !status.success() {
        return Err(format!("cannot make the trees in {}: {status}", folder.display()));
    }
    fs::write(&mark, "").context(|| "cannot mark the trees".into())?;
    Ok(folder)
}
