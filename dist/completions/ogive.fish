# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_ogive_global_optspecs
    string join \n h/help V/version
end

function __fish_ogive_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_ogive_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_ogive_using_subcommand
    set -l cmd (__fish_ogive_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c ogive -n "__fish_ogive_needs_command" -s h -l help -d 'Print help'
complete -c ogive -n "__fish_ogive_needs_command" -s V -l version -d 'Print version'
complete -c ogive -n "__fish_ogive_needs_command" -f -a "mount" -d 'Mount a directory through the cache'
complete -c ogive -n "__fish_ogive_needs_command" -f -a "unmount" -d 'Unmount, and wait until the process behind the mount has gone'
complete -c ogive -n "__fish_ogive_needs_command" -f -a "umount" -d 'Unmount, and wait until the process behind the mount has gone'
complete -c ogive -n "__fish_ogive_needs_command" -f -a "stat" -d 'Show cache statistics, one line an interval, as arcstat prints them'
complete -c ogive -n "__fish_ogive_needs_command" -f -a "doctor" -d 'Say where the CPU went, and why'
complete -c ogive -n "__fish_ogive_needs_command" -f -a "capture" -d 'Write down what "ogive doctor" needs, to be diagnosed elsewhere'
complete -c ogive -n "__fish_ogive_needs_command" -f -a "profile" -d 'Show where the CPU goes: sample stacks of kernel and programs, or read a recording'
complete -c ogive -n "__fish_ogive_needs_command" -f -a "threads" -d 'Show which CPUs are busy, and with what: time by CPU and by role of thread'
complete -c ogive -n "__fish_ogive_needs_command" -f -a "sim" -d 'Replay traces through caches: which hit ratio would which policy and size give?'
complete -c ogive -n "__fish_ogive_needs_command" -f -a "size" -d 'Say how large a cache should be, and whether a second level would help'
complete -c ogive -n "__fish_ogive_needs_command" -f -a "l2" -d 'Look after a second level: status, verify, format, destroy'
complete -c ogive -n "__fish_ogive_needs_command" -f -a "bench" -d 'Measure on this machine what ogive\'s parts cost'
complete -c ogive -n "__fish_ogive_needs_command" -f -a "completions" -d 'Print the completion script for a shell'
complete -c ogive -n "__fish_ogive_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ogive -n "__fish_ogive_using_subcommand mount" -l arc-max -d 'Most memory the cache may hold: a size, or a share of memory such as 50%' -r
complete -c ogive -n "__fish_ogive_using_subcommand mount" -l arc-min -d 'Least memory the cache keeps when the system runs short: a size or a share of memory' -r
complete -c ogive -n "__fish_ogive_using_subcommand mount" -l recordsize -l record-size -d 'Size of a record, the unit of caching: a power of two from 4K to 1M' -r
complete -c ogive -n "__fish_ogive_using_subcommand mount" -l caching -d 'What the cache keeps of bytes it has handed to the kernel\'s page cache' -r -f -a "exclusive\t'Only their history: no byte is in memory twice, and what the page cache drops is read from SRC once more before it is kept'
inclusive\t'The bytes as well: what the page cache drops is found in the cache'"
complete -c ogive -n "__fish_ogive_using_subcommand mount" -l policy -d 'Which record leaves the cache when room is needed' -r -f -a "duel\t'What LIRS, LRU, 2Q or ARC would let go, whichever does best at the moment'
arc\t'What ARC lets go, exactly as in its paper'"
complete -c ogive -n "__fish_ogive_using_subcommand mount" -l prefetch-max -d 'Most bytes read ahead of one sequential reader; 0 turns prefetch off' -r
complete -c ogive -n "__fish_ogive_using_subcommand mount" -l inode-limit -d 'Most inodes to remember, or auto, which goes by the size of the cache' -r
complete -c ogive -n "__fish_ogive_using_subcommand mount" -l l2 -d 'Keep records that fall out of memory on this file or block device; may be repeated' -r -F
complete -c ogive -n "__fish_ogive_using_subcommand mount" -l l2-size -d 'Size of each --l2 (default: what it has); another size than before keeps what still fits' -r
complete -c ogive -n "__fish_ogive_using_subcommand mount" -l cipher -d 'How records are sealed (default: as the device is, aes-256-gcm for a new one)' -r -f -a "aes-256-gcm\t'AES-256-GCM: fast wherever the processor has AES'
aes-256-ccm\t'AES-256-CCM: many times slower by design; for comparison'
off\t'A checksum only: damage is found, but whoever has the device can read it'"
complete -c ogive -n "__fish_ogive_using_subcommand mount" -l compress -d 'How records are compressed: lz4, zstd:N (1 to 19) or off; skipped where it does not pay' -r
complete -c ogive -n "__fish_ogive_using_subcommand mount" -l key-file -d 'File with the key that seals --l2: 32 bytes, or 64 hexadecimal digits' -r -F
complete -c ogive -n "__fish_ogive_using_subcommand mount" -l passphrase-fd -d 'Read the passphrase from this open file descriptor, up to its end or the first line\'s' -r
complete -c ogive -n "__fish_ogive_using_subcommand mount" -l l2-write-max -d 'Most bytes a second written to each --l2 (default: no limit)' -r
complete -c ogive -n "__fish_ogive_using_subcommand mount" -l l2-dwpd -d 'Most times a day that each --l2 may be written over, once it is full (default: no limit)' -r
complete -c ogive -n "__fish_ogive_using_subcommand mount" -l l2-admit -d 'What is worth writing' -r -f -a "careful\t'What was used more than once, and of the rest what the write limits leave room for; not unused prefetch and not long sequential runs'
all\t'Everything the write limits leave room for'"
complete -c ogive -n "__fish_ogive_using_subcommand mount" -l l2-engine -d 'How each --l2 is read and written' -r -f -a "auto\t'io_uring and O_DIRECT where the system gives them'
pread\t'O_DIRECT where the system gives it, without io_uring'
buffered\t'Through the kernel\'s page cache'"
complete -c ogive -n "__fish_ogive_using_subcommand mount" -l metadata-ttl -d 'How long attributes, names and link targets may be used without asking SRC again' -r
complete -c ogive -n "__fish_ogive_using_subcommand mount" -l negative-ttl -d 'How long a name that does not exist may be remembered as missing' -r
complete -c ogive -n "__fish_ogive_using_subcommand mount" -l racy-window -d 'How old a file\'s last change must be before its times are trusted to tell the next one, or auto' -r
complete -c ogive -n "__fish_ogive_using_subcommand mount" -s o -l options -d 'Options as in /etc/fstab, separated by commas; may be repeated' -r
complete -c ogive -n "__fish_ogive_using_subcommand mount" -l log-file -d 'Append messages to this file once the mount answers (default: discard them in the background)' -r -F
complete -c ogive -n "__fish_ogive_using_subcommand mount" -l threads -d 'Threads that answer the kernel\'s requests, or auto, which goes by the processors' -r
complete -c ogive -n "__fish_ogive_using_subcommand mount" -l transport -d 'How the kernel\'s requests come to ogive' -r -f -a "auto\t'io_uring with --direct-io where the kernel offers it, the device otherwise'
uring\t'io_uring, or no mount'
device\t'The device'"
complete -c ogive -n "__fish_ogive_using_subcommand mount" -l origin-threads -d 'Threads that wait for SRC, at most, or auto, which is 32' -r
complete -c ogive -n "__fish_ogive_using_subcommand mount" -l control-name -d 'Name of the hidden control directory in MNT; empty for none' -r
complete -c ogive -n "__fish_ogive_using_subcommand mount" -l name -d 'Name of the source in the list of mounts (default: the path of SRC)' -r
complete -c ogive -n "__fish_ogive_using_subcommand mount" -l direct-io -d 'Bypass the kernel\'s page cache: every read comes to ogive'
complete -c ogive -n "__fish_ogive_using_subcommand mount" -l passphrase -d 'Ask for a passphrase, which argon2id makes the key of'
complete -c ogive -n "__fish_ogive_using_subcommand mount" -l sole-writer -d 'Promise that nothing changes SRC except through this mount'
complete -c ogive -n "__fish_ogive_using_subcommand mount" -s r -l read-only -d 'Refuse every change'
complete -c ogive -n "__fish_ogive_using_subcommand mount" -l allow-other -d 'Let users other than the one who mounts use the mount, under ordinary permissions'
complete -c ogive -n "__fish_ogive_using_subcommand mount" -l dev -d 'Let device files in the mount work as devices (root only)'
complete -c ogive -n "__fish_ogive_using_subcommand mount" -l suid -d 'Honour set-user-ID and set-group-ID bits and file capabilities in the mount (root only)'
complete -c ogive -n "__fish_ogive_using_subcommand mount" -l no-exec -d 'Let no file in the mount be executed'
complete -c ogive -n "__fish_ogive_using_subcommand mount" -l sloppy -d 'Ignore options in -o that ogive does not know instead of refusing them'
complete -c ogive -n "__fish_ogive_using_subcommand mount" -s f -l foreground -d 'Stay in the foreground; messages go to standard error'
complete -c ogive -n "__fish_ogive_using_subcommand mount" -s v -l verbose -d 'Say more: -v what is done, -vv in detail (development builds only)'
complete -c ogive -n "__fish_ogive_using_subcommand mount" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ogive -n "__fish_ogive_using_subcommand unmount" -l wait -d 'How long to wait for the process to end after the unmount; 0 does not wait' -r
complete -c ogive -n "__fish_ogive_using_subcommand unmount" -s l -l lazy -d 'Take the mount out of the tree even if it is in use; it ends when the last program lets go'
complete -c ogive -n "__fish_ogive_using_subcommand unmount" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ogive -n "__fish_ogive_using_subcommand umount" -l wait -d 'How long to wait for the process to end after the unmount; 0 does not wait' -r
complete -c ogive -n "__fish_ogive_using_subcommand umount" -s l -l lazy -d 'Take the mount out of the tree even if it is in use; it ends when the last program lets go'
complete -c ogive -n "__fish_ogive_using_subcommand umount" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ogive -n "__fish_ogive_using_subcommand stat" -s f -l fields -d 'Show these columns, separated by commas (-v lists them)' -r
complete -c ogive -n "__fish_ogive_using_subcommand stat" -s s -l separator -d 'What stands between two columns' -r
complete -c ogive -n "__fish_ogive_using_subcommand stat" -s o -l output -d 'Write to this file instead of standard output' -r -F
complete -c ogive -n "__fish_ogive_using_subcommand stat" -l kstat -d 'Read kstats below this directory instead of a mount or the kernel' -r -f -a "(__fish_complete_directories)"
complete -c ogive -n "__fish_ogive_using_subcommand stat" -s x -l extended -d 'Show the extended columns: hits by list, ghost hits, skips'
complete -c ogive -n "__fish_ogive_using_subcommand stat" -s z -l prefetch -d 'Show the columns of prefetch streams'
complete -c ogive -n "__fish_ogive_using_subcommand stat" -s a -l all -d 'Show all columns'
complete -c ogive -n "__fish_ogive_using_subcommand stat" -s v -l list -d 'List the columns and what they mean, and stop'
complete -c ogive -n "__fish_ogive_using_subcommand stat" -s j -l json -d 'Print one JSON object a line, with the unrounded values of the columns'
complete -c ogive -n "__fish_ogive_using_subcommand stat" -s p -l raw -d 'Print plain numbers instead of scaling them to K, M, G'
complete -c ogive -n "__fish_ogive_using_subcommand stat" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ogive -n "__fish_ogive_using_subcommand doctor" -l for -d 'How long to look at the host or mount' -r
complete -c ogive -n "__fish_ogive_using_subcommand doctor" -l html -d 'Write the answer with the flame graph as one HTML file ("-" for standard output)' -r -F
complete -c ogive -n "__fish_ogive_using_subcommand doctor" -l explain -d 'Print what is known about a cause: signs, look-alikes, remedy, references' -r
complete -c ogive -n "__fish_ogive_using_subcommand doctor" -l rules -d 'Add the rules of a directory (*.toml) to the built-in ones' -r -f -a "(__fish_complete_directories)"
complete -c ogive -n "__fish_ogive_using_subcommand doctor" -s j -l json -d 'Print the answer as JSON'
complete -c ogive -n "__fish_ogive_using_subcommand doctor" -l list -d 'List all causes'
complete -c ogive -n "__fish_ogive_using_subcommand doctor" -l lint -d 'Check the rules and say what is wrong with them'
complete -c ogive -n "__fish_ogive_using_subcommand doctor" -s h -l help -d 'Print help'
complete -c ogive -n "__fish_ogive_using_subcommand capture" -s o -l output -d 'Where to write; it must not exist yet ("-" for standard output)' -r -F
complete -c ogive -n "__fish_ogive_using_subcommand capture" -l for -d 'How long to look' -r
complete -c ogive -n "__fish_ogive_using_subcommand capture" -l redact -d 'Replace names of hosts, users\' programs, data sets, pools and paths by numbered ones'
complete -c ogive -n "__fish_ogive_using_subcommand capture" -s h -l help -d 'Print help'
complete -c ogive -n "__fish_ogive_using_subcommand profile" -s p -l pid -d 'Only these processes' -r
complete -c ogive -n "__fish_ogive_using_subcommand profile" -s t -l thread -d 'Only threads whose name matches this regular expression, such as z_rd_int' -r
complete -c ogive -n "__fish_ogive_using_subcommand profile" -s F -l frequency -d 'Samples a second on each CPU' -r
complete -c ogive -n "__fish_ogive_using_subcommand profile" -l for -d 'How long to sample; Ctrl-C ends it earlier, and what was sampled is used' -r
complete -c ogive -n "__fish_ogive_using_subcommand profile" -s o -l output -d 'Write to this file; may be given several times' -r -F
complete -c ogive -n "__fish_ogive_using_subcommand profile" -l format -d 'What to write, whatever the name of the file' -r -f -a "html\t''
svg\t''
folded\t''
pprof\t''
speedscope\t''
firefox\t''
json\t''"
complete -c ogive -n "__fish_ogive_using_subcommand profile" -l baseline -d 'Show the difference from this recording, made before (HTML and SVG)' -r -F
complete -c ogive -n "__fish_ogive_using_subcommand profile" -l top -d 'Rows of the tables that are printed' -r
complete -c ogive -n "__fish_ogive_using_subcommand profile" -l kallsyms -d 'A copy of /proc/kallsyms of the machine and boot that FILE is of' -r -F
complete -c ogive -n "__fish_ogive_using_subcommand profile" -l symbols -d 'Look for modules and programs below this directory first; may be given several times' -r -f -a "(__fish_complete_directories)"
complete -c ogive -n "__fish_ogive_using_subcommand profile" -l roles -d 'More names of threads and what they do, as TOML' -r -F
complete -c ogive -n "__fish_ogive_using_subcommand profile" -s a -l all -d 'The whole machine, which is also what is sampled when nothing is chosen'
complete -c ogive -n "__fish_ogive_using_subcommand profile" -l idle -d 'Keep the samples of idle CPUs'
complete -c ogive -n "__fish_ogive_using_subcommand profile" -s j -l json -d 'Print the summary as JSON'
complete -c ogive -n "__fish_ogive_using_subcommand profile" -l foreign -d 'Use nothing of this machine to name the addresses in FILE'
complete -c ogive -n "__fish_ogive_using_subcommand profile" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ogive -n "__fish_ogive_using_subcommand threads" -l for -d 'How long to watch; Ctrl-C ends it earlier' -r
complete -c ogive -n "__fish_ogive_using_subcommand threads" -l top -d 'Rows of each table that are printed' -r
complete -c ogive -n "__fish_ogive_using_subcommand threads" -l roles -d 'More names of threads and what they do, as TOML' -r -F
complete -c ogive -n "__fish_ogive_using_subcommand threads" -l locks -d 'Show this text of lockstat or "perf lock contention" as a table; - is standard input' -r -F
complete -c ogive -n "__fish_ogive_using_subcommand threads" -s j -l json -d 'Print JSON'
complete -c ogive -n "__fish_ogive_using_subcommand threads" -l list -d 'List the names of threads that are known, by version of OpenZFS, and stop'
complete -c ogive -n "__fish_ogive_using_subcommand threads" -s h -l help -d 'Print help'
complete -c ogive -n "__fish_ogive_using_subcommand sim" -s p -l policy -d 'Policies, separated by commas, or "all"' -r
complete -c ogive -n "__fish_ogive_using_subcommand sim" -s s -l size -d 'Sizes, separated by commas: 1%, 512MiB, or entries' -r
complete -c ogive -n "__fish_ogive_using_subcommand sim" -s f -l format -d 'Format of the traces, if it cannot be told' -r
complete -c ogive -n "__fish_ogive_using_subcommand sim" -s b -l block-size -d 'Bytes in a block: what ranges are cut into (4K if not given), and what a key without a size weighs (1 if not given)' -r
complete -c ogive -n "__fish_ogive_using_subcommand sim" -s n -l limit -d 'Read at most this many requests' -r
complete -c ogive -n "__fish_ogive_using_subcommand sim" -l sample -d 'Replay only this share of the keys, through caches smaller by as much, such as 1% or 0.01' -r
complete -c ogive -n "__fish_ogive_using_subcommand sim" -l sublists -d 'Replay with this many sublists of the engine, separated by commas' -r
complete -c ogive -n "__fish_ogive_using_subcommand sim" -l threads -d 'Threads that replay' -r
complete -c ogive -n "__fish_ogive_using_subcommand sim" -l curve-keys -d 'Keys that the LRU curve keeps (SHARDS); "exact" for all' -r
complete -c ogive -n "__fish_ogive_using_subcommand sim" -l svg -d 'Write the curve as SVG' -r -F
complete -c ogive -n "__fish_ogive_using_subcommand sim" -l html -d 'Write curve and table as one HTML page' -r -F
complete -c ogive -n "__fish_ogive_using_subcommand sim" -l traces -d 'Where the paper\'s traces are (OLTP.lis, P3.lis..., perhaps compressed)' -r -f -a "(__fish_complete_directories)"
complete -c ogive -n "__fish_ogive_using_subcommand sim" -l record -d 'Record the reads of this mount, until interrupted, into the file named with -o' -r -f -a "(__fish_complete_directories)"
complete -c ogive -n "__fish_ogive_using_subcommand sim" -s o -l output -d 'Where to write what is recorded; - for standard output' -r -F
complete -c ogive -n "__fish_ogive_using_subcommand sim" -l for -d 'Stop recording after this time' -r
complete -c ogive -n "__fish_ogive_using_subcommand sim" -s e -l entries -d 'Count every key as 1, whatever it weighs: sizes are in entries'
complete -c ogive -n "__fish_ogive_using_subcommand sim" -l reads-only -d 'Pass over writes'
complete -c ogive -n "__fish_ogive_using_subcommand sim" -l with-prefetch -d 'Count prefetches as requests'
complete -c ogive -n "__fish_ogive_using_subcommand sim" -l skip-bad -d 'Count bad records and go on, instead of stopping at the first'
complete -c ogive -n "__fish_ogive_using_subcommand sim" -l curve -d 'Draw the hit ratio over the size, with the whole LRU curve'
complete -c ogive -n "__fish_ogive_using_subcommand sim" -s j -l json -d 'Print JSON instead of a table'
complete -c ogive -n "__fish_ogive_using_subcommand sim" -l csv -d 'Print comma-separated values instead of a table'
complete -c ogive -n "__fish_ogive_using_subcommand sim" -s q -l quiet -d 'Show no progress bar'
complete -c ogive -n "__fish_ogive_using_subcommand sim" -l paper -d 'Print the tables of the ARC paper beside our own numbers'
complete -c ogive -n "__fish_ogive_using_subcommand sim" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ogive -n "__fish_ogive_using_subcommand size" -s m -l memory -d 'Sizes of memory to try with a trace, separated by commas' -r
complete -c ogive -n "__fish_ogive_using_subcommand size" -l l2 -d 'Size of the second level to try with a trace' -r
complete -c ogive -n "__fish_ogive_using_subcommand size" -s d -l during -d 'Take two readings of a mount or of OpenZFS, this time apart' -r
complete -c ogive -n "__fish_ogive_using_subcommand size" -s f -l format -d 'Format of the traces, if it cannot be told' -r
complete -c ogive -n "__fish_ogive_using_subcommand size" -s b -l block-size -d 'Bytes in a block: what ranges are cut into (4K if not given), and what a key without a size weighs (1 if not given)' -r
complete -c ogive -n "__fish_ogive_using_subcommand size" -s n -l limit -d 'Read at most this many requests' -r
complete -c ogive -n "__fish_ogive_using_subcommand size" -s j -l json -d 'Print JSON'
complete -c ogive -n "__fish_ogive_using_subcommand size" -s q -l quiet -d 'Show no progress bar'
complete -c ogive -n "__fish_ogive_using_subcommand size" -s e -l entries -d 'Count every key as 1, whatever it weighs: sizes are in entries'
complete -c ogive -n "__fish_ogive_using_subcommand size" -l reads-only -d 'Pass over writes'
complete -c ogive -n "__fish_ogive_using_subcommand size" -l with-prefetch -d 'Count prefetches as requests'
complete -c ogive -n "__fish_ogive_using_subcommand size" -l skip-bad -d 'Count bad records and go on, instead of stopping at the first'
complete -c ogive -n "__fish_ogive_using_subcommand size" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ogive -n "__fish_ogive_using_subcommand l2; and not __fish_seen_subcommand_from status verify format destroy help" -s h -l help -d 'Print help'
complete -c ogive -n "__fish_ogive_using_subcommand l2; and not __fish_seen_subcommand_from status verify format destroy help" -f -a "status" -d 'Say what is on it; needs no key'
complete -c ogive -n "__fish_ogive_using_subcommand l2; and not __fish_seen_subcommand_from status verify format destroy help" -f -a "verify" -d 'Read all of it and check every seal'
complete -c ogive -n "__fish_ogive_using_subcommand l2; and not __fish_seen_subcommand_from status verify format destroy help" -f -a "format" -d 'Make it new and empty'
complete -c ogive -n "__fish_ogive_using_subcommand l2; and not __fish_seen_subcommand_from status verify format destroy help" -f -a "destroy" -d 'Make what is on it unreadable for everybody, also for those who have the key'
complete -c ogive -n "__fish_ogive_using_subcommand l2; and not __fish_seen_subcommand_from status verify format destroy help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ogive -n "__fish_ogive_using_subcommand l2; and __fish_seen_subcommand_from status" -l json -d 'Print JSON'
complete -c ogive -n "__fish_ogive_using_subcommand l2; and __fish_seen_subcommand_from status" -s h -l help -d 'Print help'
complete -c ogive -n "__fish_ogive_using_subcommand l2; and __fish_seen_subcommand_from verify" -l key-file -d 'File with the key that seals --l2: 32 bytes, or 64 hexadecimal digits' -r -F
complete -c ogive -n "__fish_ogive_using_subcommand l2; and __fish_seen_subcommand_from verify" -l passphrase-fd -d 'Read the passphrase from this open file descriptor, up to its end or the first line\'s' -r
complete -c ogive -n "__fish_ogive_using_subcommand l2; and __fish_seen_subcommand_from verify" -l passphrase -d 'Ask for a passphrase, which argon2id makes the key of'
complete -c ogive -n "__fish_ogive_using_subcommand l2; and __fish_seen_subcommand_from verify" -l json -d 'Print JSON'
complete -c ogive -n "__fish_ogive_using_subcommand l2; and __fish_seen_subcommand_from verify" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ogive -n "__fish_ogive_using_subcommand l2; and __fish_seen_subcommand_from format" -l key-file -d 'File with the key that seals --l2: 32 bytes, or 64 hexadecimal digits' -r -F
complete -c ogive -n "__fish_ogive_using_subcommand l2; and __fish_seen_subcommand_from format" -l passphrase-fd -d 'Read the passphrase from this open file descriptor, up to its end or the first line\'s' -r
complete -c ogive -n "__fish_ogive_using_subcommand l2; and __fish_seen_subcommand_from format" -l l2-size -l size -d 'Size of the file (default: what it has)' -r
complete -c ogive -n "__fish_ogive_using_subcommand l2; and __fish_seen_subcommand_from format" -l cipher -d 'How records are sealed (default: aes-256-gcm)' -r -f -a "aes-256-gcm\t'AES-256-GCM: fast wherever the processor has AES'
aes-256-ccm\t'AES-256-CCM: many times slower by design; for comparison'
off\t'A checksum only: damage is found, but whoever has the device can read it'"
complete -c ogive -n "__fish_ogive_using_subcommand l2; and __fish_seen_subcommand_from format" -l passphrase -d 'Ask for a passphrase, which argon2id makes the key of'
complete -c ogive -n "__fish_ogive_using_subcommand l2; and __fish_seen_subcommand_from format" -l force -d 'Overwrite whatever is there'
complete -c ogive -n "__fish_ogive_using_subcommand l2; and __fish_seen_subcommand_from format" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ogive -n "__fish_ogive_using_subcommand l2; and __fish_seen_subcommand_from destroy" -l force -d 'Also if it is not ogive\'s'
complete -c ogive -n "__fish_ogive_using_subcommand l2; and __fish_seen_subcommand_from destroy" -s h -l help -d 'Print help'
complete -c ogive -n "__fish_ogive_using_subcommand l2; and __fish_seen_subcommand_from help" -f -a "status" -d 'Say what is on it; needs no key'
complete -c ogive -n "__fish_ogive_using_subcommand l2; and __fish_seen_subcommand_from help" -f -a "verify" -d 'Read all of it and check every seal'
complete -c ogive -n "__fish_ogive_using_subcommand l2; and __fish_seen_subcommand_from help" -f -a "format" -d 'Make it new and empty'
complete -c ogive -n "__fish_ogive_using_subcommand l2; and __fish_seen_subcommand_from help" -f -a "destroy" -d 'Make what is on it unreadable for everybody, also for those who have the key'
complete -c ogive -n "__fish_ogive_using_subcommand l2; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ogive -n "__fish_ogive_using_subcommand bench; and not __fish_seen_subcommand_from arc seal sick help" -s h -l help -d 'Print help'
complete -c ogive -n "__fish_ogive_using_subcommand bench; and not __fish_seen_subcommand_from arc seal sick help" -f -a "arc" -d 'Cached random 8 KiB reads: the engine, the same policy behind locks, and the bare copy'
complete -c ogive -n "__fish_ogive_using_subcommand bench; and not __fish_seen_subcommand_from arc seal sick help" -f -a "seal" -d 'Read one file through AES-256-CCM, AES-256-GCM and no cipher'
complete -c ogive -n "__fish_ogive_using_subcommand bench; and not __fish_seen_subcommand_from arc seal sick help" -f -a "sick" -d 'Make a mount that is ill in a known way, for "ogive doctor" to find out'
complete -c ogive -n "__fish_ogive_using_subcommand bench; and not __fish_seen_subcommand_from arc seal sick help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ogive -n "__fish_ogive_using_subcommand bench; and __fish_seen_subcommand_from arc" -l size -d 'How many records, as bytes; each of the four candidates has its own' -r
complete -c ogive -n "__fish_ogive_using_subcommand bench; and __fish_seen_subcommand_from arc" -l threads -d 'Numbers of threads, separated by commas' -r
complete -c ogive -n "__fish_ogive_using_subcommand bench; and __fish_seen_subcommand_from arc" -l rounds -d 'Rounds; each measures every candidate with every number of threads' -r
complete -c ogive -n "__fish_ogive_using_subcommand bench; and __fish_seen_subcommand_from arc" -l millis -d 'How long each measurement of a round takes, in milliseconds' -r
complete -c ogive -n "__fish_ogive_using_subcommand bench; and __fish_seen_subcommand_from arc" -l json -d 'Print JSON instead of a table'
complete -c ogive -n "__fish_ogive_using_subcommand bench; and __fish_seen_subcommand_from arc" -s h -l help -d 'Print help'
complete -c ogive -n "__fish_ogive_using_subcommand bench; and __fish_seen_subcommand_from seal" -l dir -d 'Where to work; a directory is made there and removed at the end' -r -f -a "(__fish_complete_directories)"
complete -c ogive -n "__fish_ogive_using_subcommand bench; and __fish_seen_subcommand_from seal" -l size -d 'Size of the file (default: 2G, or an eighth of the free space if that is less)' -r
complete -c ogive -n "__fish_ogive_using_subcommand bench; and __fish_seen_subcommand_from seal" -l json -d 'Print JSON'
complete -c ogive -n "__fish_ogive_using_subcommand bench; and __fish_seen_subcommand_from seal" -s h -l help -d 'Print help'
complete -c ogive -n "__fish_ogive_using_subcommand bench; and __fish_seen_subcommand_from sick" -l for -d 'How long the load runs' -r
complete -c ogive -n "__fish_ogive_using_subcommand bench; and __fish_seen_subcommand_from sick" -l dir -d 'Where to work; a directory is made there and removed at the end' -r -f -a "(__fish_complete_directories)"
complete -c ogive -n "__fish_ogive_using_subcommand bench; and __fish_seen_subcommand_from sick" -l keep -d 'Go on until Ctrl-C'
complete -c ogive -n "__fish_ogive_using_subcommand bench; and __fish_seen_subcommand_from sick" -l json -d 'Print one line of JSON once the load runs: mount_point, sickness, expect'
complete -c ogive -n "__fish_ogive_using_subcommand bench; and __fish_seen_subcommand_from sick" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ogive -n "__fish_ogive_using_subcommand bench; and __fish_seen_subcommand_from help" -f -a "arc" -d 'Cached random 8 KiB reads: the engine, the same policy behind locks, and the bare copy'
complete -c ogive -n "__fish_ogive_using_subcommand bench; and __fish_seen_subcommand_from help" -f -a "seal" -d 'Read one file through AES-256-CCM, AES-256-GCM and no cipher'
complete -c ogive -n "__fish_ogive_using_subcommand bench; and __fish_seen_subcommand_from help" -f -a "sick" -d 'Make a mount that is ill in a known way, for "ogive doctor" to find out'
complete -c ogive -n "__fish_ogive_using_subcommand bench; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ogive -n "__fish_ogive_using_subcommand completions" -s h -l help -d 'Print help'
complete -c ogive -n "__fish_ogive_using_subcommand help; and not __fish_seen_subcommand_from mount unmount stat doctor capture profile threads sim size l2 bench completions help" -f -a "mount" -d 'Mount a directory through the cache'
complete -c ogive -n "__fish_ogive_using_subcommand help; and not __fish_seen_subcommand_from mount unmount stat doctor capture profile threads sim size l2 bench completions help" -f -a "unmount" -d 'Unmount, and wait until the process behind the mount has gone'
complete -c ogive -n "__fish_ogive_using_subcommand help; and not __fish_seen_subcommand_from mount unmount stat doctor capture profile threads sim size l2 bench completions help" -f -a "stat" -d 'Show cache statistics, one line an interval, as arcstat prints them'
complete -c ogive -n "__fish_ogive_using_subcommand help; and not __fish_seen_subcommand_from mount unmount stat doctor capture profile threads sim size l2 bench completions help" -f -a "doctor" -d 'Say where the CPU went, and why'
complete -c ogive -n "__fish_ogive_using_subcommand help; and not __fish_seen_subcommand_from mount unmount stat doctor capture profile threads sim size l2 bench completions help" -f -a "capture" -d 'Write down what "ogive doctor" needs, to be diagnosed elsewhere'
complete -c ogive -n "__fish_ogive_using_subcommand help; and not __fish_seen_subcommand_from mount unmount stat doctor capture profile threads sim size l2 bench completions help" -f -a "profile" -d 'Show where the CPU goes: sample stacks of kernel and programs, or read a recording'
complete -c ogive -n "__fish_ogive_using_subcommand help; and not __fish_seen_subcommand_from mount unmount stat doctor capture profile threads sim size l2 bench completions help" -f -a "threads" -d 'Show which CPUs are busy, and with what: time by CPU and by role of thread'
complete -c ogive -n "__fish_ogive_using_subcommand help; and not __fish_seen_subcommand_from mount unmount stat doctor capture profile threads sim size l2 bench completions help" -f -a "sim" -d 'Replay traces through caches: which hit ratio would which policy and size give?'
complete -c ogive -n "__fish_ogive_using_subcommand help; and not __fish_seen_subcommand_from mount unmount stat doctor capture profile threads sim size l2 bench completions help" -f -a "size" -d 'Say how large a cache should be, and whether a second level would help'
complete -c ogive -n "__fish_ogive_using_subcommand help; and not __fish_seen_subcommand_from mount unmount stat doctor capture profile threads sim size l2 bench completions help" -f -a "l2" -d 'Look after a second level: status, verify, format, destroy'
complete -c ogive -n "__fish_ogive_using_subcommand help; and not __fish_seen_subcommand_from mount unmount stat doctor capture profile threads sim size l2 bench completions help" -f -a "bench" -d 'Measure on this machine what ogive\'s parts cost'
complete -c ogive -n "__fish_ogive_using_subcommand help; and not __fish_seen_subcommand_from mount unmount stat doctor capture profile threads sim size l2 bench completions help" -f -a "completions" -d 'Print the completion script for a shell'
complete -c ogive -n "__fish_ogive_using_subcommand help; and not __fish_seen_subcommand_from mount unmount stat doctor capture profile threads sim size l2 bench completions help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ogive -n "__fish_ogive_using_subcommand help; and __fish_seen_subcommand_from l2" -f -a "status" -d 'Say what is on it; needs no key'
complete -c ogive -n "__fish_ogive_using_subcommand help; and __fish_seen_subcommand_from l2" -f -a "verify" -d 'Read all of it and check every seal'
complete -c ogive -n "__fish_ogive_using_subcommand help; and __fish_seen_subcommand_from l2" -f -a "format" -d 'Make it new and empty'
complete -c ogive -n "__fish_ogive_using_subcommand help; and __fish_seen_subcommand_from l2" -f -a "destroy" -d 'Make what is on it unreadable for everybody, also for those who have the key'
complete -c ogive -n "__fish_ogive_using_subcommand help; and __fish_seen_subcommand_from bench" -f -a "arc" -d 'Cached random 8 KiB reads: the engine, the same policy behind locks, and the bare copy'
complete -c ogive -n "__fish_ogive_using_subcommand help; and __fish_seen_subcommand_from bench" -f -a "seal" -d 'Read one file through AES-256-CCM, AES-256-GCM and no cipher'
complete -c ogive -n "__fish_ogive_using_subcommand help; and __fish_seen_subcommand_from bench" -f -a "sick" -d 'Make a mount that is ill in a known way, for "ogive doctor" to find out'
