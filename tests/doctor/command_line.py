"""The command line of the doctor's suites: the names of what to run, and --list."""
import sys


def chosen(parser, kind, known):
    """The arguments, and those of the known ones that they name: without any name, all."""
    parser.add_argument("names", nargs="*")
    parser.add_argument("--list", action="store_true")
    args = parser.parse_args()
    if args.list:
        print("\n".join(one.name for one in known))
        sys.exit(0)
    unknown = set(args.names) - {one.name for one in known}
    if unknown:
        print(f"there is no {kind} {', '.join(sorted(unknown))}; --list names them", file=sys.stderr)
        sys.exit(2)
    return args, [one for one in known if one.name in args.names or not args.names]
