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
complete -c ogive -n "__fish_ogive_needs_command" -f -a "completions" -d 'Print the completion script for a shell'
complete -c ogive -n "__fish_ogive_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ogive -n "__fish_ogive_using_subcommand mount" -l arc-max -d 'Most memory the cache may hold: a size, or a share of memory such as 50%' -r
complete -c ogive -n "__fish_ogive_using_subcommand mount" -l arc-min -d 'Least memory the cache keeps when the system runs short: a size or a share of memory' -r
complete -c ogive -n "__fish_ogive_using_subcommand mount" -l recordsize -l record-size -d 'Size of a record, the unit of caching: a power of two from 4K to 1M' -r
complete -c ogive -n "__fish_ogive_using_subcommand mount" -l caching -d 'What the cache keeps of bytes it has handed to the kernel\'s page cache' -r -f -a "exclusive\t'Only their history: no byte is in memory twice, and what the page cache drops is read from SRC once more before it is kept'
inclusive\t'The bytes as well: what the page cache drops is found in the cache'"
complete -c ogive -n "__fish_ogive_using_subcommand mount" -l prefetch-max -d 'Most bytes read ahead of one sequential reader; 0 turns prefetch off' -r
complete -c ogive -n "__fish_ogive_using_subcommand mount" -l inode-limit -d 'Most inodes to remember, or auto, which goes by the size of the cache' -r
complete -c ogive -n "__fish_ogive_using_subcommand mount" -l metadata-ttl -d 'How long attributes, names and link targets may be used without asking SRC again' -r
complete -c ogive -n "__fish_ogive_using_subcommand mount" -l negative-ttl -d 'How long a name that does not exist may be remembered as missing' -r
complete -c ogive -n "__fish_ogive_using_subcommand mount" -l racy-window -d 'How old a file\'s last change must be before its times are trusted to tell the next one, or auto' -r
complete -c ogive -n "__fish_ogive_using_subcommand mount" -s o -l options -d 'Options as in /etc/fstab, separated by commas; may be repeated' -r
complete -c ogive -n "__fish_ogive_using_subcommand mount" -l log-file -d 'Append messages to this file once the mount answers (default: discard them in the background)' -r -F
complete -c ogive -n "__fish_ogive_using_subcommand mount" -l threads -d 'Threads that answer the kernel\'s requests, or auto, which goes by the processors' -r
complete -c ogive -n "__fish_ogive_using_subcommand mount" -l origin-threads -d 'Threads that wait for SRC, at most, or auto, which is 32' -r
complete -c ogive -n "__fish_ogive_using_subcommand mount" -l control-name -d 'Name of the hidden control directory in MNT; empty for none' -r
complete -c ogive -n "__fish_ogive_using_subcommand mount" -l name -d 'Name of the source in the list of mounts (default: the path of SRC)' -r
complete -c ogive -n "__fish_ogive_using_subcommand mount" -l direct-io -d 'Bypass the kernel\'s page cache: every read comes to ogive'
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
complete -c ogive -n "__fish_ogive_using_subcommand completions" -s h -l help -d 'Print help'
complete -c ogive -n "__fish_ogive_using_subcommand help; and not __fish_seen_subcommand_from mount unmount stat completions help" -f -a "mount" -d 'Mount a directory through the cache'
complete -c ogive -n "__fish_ogive_using_subcommand help; and not __fish_seen_subcommand_from mount unmount stat completions help" -f -a "unmount" -d 'Unmount, and wait until the process behind the mount has gone'
complete -c ogive -n "__fish_ogive_using_subcommand help; and not __fish_seen_subcommand_from mount unmount stat completions help" -f -a "stat" -d 'Show cache statistics, one line an interval, as arcstat prints them'
complete -c ogive -n "__fish_ogive_using_subcommand help; and not __fish_seen_subcommand_from mount unmount stat completions help" -f -a "completions" -d 'Print the completion script for a shell'
complete -c ogive -n "__fish_ogive_using_subcommand help; and not __fish_seen_subcommand_from mount unmount stat completions help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
