import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { aptInstall } from '../support/apt.ts';
import { freePort } from '../support/free-port.ts';
import { outside } from '../support/shared-installation.ts';

/** A consumer of `examples/serve`: how a copy of it is made ready in a folder, and with which function in place of its own. */
export interface Language {
  readonly name: string;
  /** Debian's package. */
  readonly package: string;
  readonly file: string;
  /** What its `handle` is replaced by, so that an event says what happens to it: `FATES`. */
  readonly fated: string;
  /** Its `handle`, as the example has it. */
  readonly handle: RegExp;
  /** The program that tells if the language is there, and its arguments. */
  readonly version: readonly [program: string, ...args: readonly string[]];
  /** Runs once in the folder, before the first start. */
  readonly build: readonly string[];
  /** Runs in the folder, followed by the files of the secrets. */
  readonly start: readonly string[];
}

/**
 * What an event asks the replaced function to do, as `data.data.do`, after the function has printed it with the event's id:
 * return, fail, say that it can never be handled, end the process the first time, or return once the file `gate` is there.
 */
export type Fate = 'return' | 'fail' | 'never' | 'die' | 'wait';

const PYTHON = `def handle(event):
    fate = event["data"]["data"]["do"]
    print(fate, event["id"], flush=True)
    if fate == "fail":
        raise RuntimeError("not today")
    if fate == "never":
        raise NeverPossible("no such \\ud800 media buy")
    if fate == "die" and not os.path.exists("died"):
        open("died", "w").close()
        os.kill(os.getpid(), 9)
    while fate == "wait" and not os.path.exists("gate"):
        time.sleep(0.01)


`;

const GO = `func handle(_ context.Context, event Event) error {
	var data struct{ Do string }
	if err := json.Unmarshal(event.Data.Data, &data); err != nil {
		return err
	}
	fate := data.Do
	fmt.Println(fate, event.ID)
	switch fate {
	case "fail":
		return errors.New("not today")
	case "never":
		return fmt.Errorf("%w: no such media buy", errNeverPossible)
	case "die":
		if _, err := os.Stat("died"); err != nil {
			os.WriteFile("died", nil, 0o600)
			process, _ := os.FindProcess(os.Getpid())
			process.Kill()
			select {}
		}
	case "wait":
		for _, err := os.Stat("gate"); err != nil; _, err = os.Stat("gate") {
			time.Sleep(10 * time.Millisecond)
		}
	}
	return nil
}
`;

export const PYTHON_CONSUMER: Language = {
  name: 'Python',
  package: 'python3',
  file: 'consumer.py',
  fated: PYTHON,
  handle: /^def handle\(.*?\n(?=class )/ms,
  version: ['python3', '--version'],
  build: [],
  start: ['python3', 'consumer.py'],
};

export const GO_CONSUMER: Language = {
  name: 'Go',
  package: 'golang-go',
  file: 'consumer.go',
  fated: GO,
  handle: /^func handle\(.*?^\}\n/ms,
  version: ['go', 'version'],
  build: ['go', 'build', '-o', 'consumer', 'consumer.go'],
  start: ['./consumer'],
};

/** @throws Error that says what to install, where Debian's package cannot be installed here. */
export async function needLanguage(language: Language): Promise<void> {
  const [program, ...args] = language.version;
  const isInstalled = (): boolean => spawnSync(program, args).status === 0;
  await aptInstall({ name: language.package, isInstalled });
  if (!isInstalled())
    throw new Error(`These tests need ${program} (Debian: apt-get install ${language.package}).`);
}

/** A running consumer. Disposing of it kills it. */
export interface Consumer extends AsyncDisposable {
  readonly origin: string;
  readonly port: number;
  /** What its function printed so far, in lines. */
  readonly lines: () => readonly string[];
  /** All that it printed. */
  readonly printed: () => string;
  /** Resolves with its exit code once it has ended, null where a signal ended it. */
  readonly ended: Promise<number | null>;
}

/** A folder with a consumer of one language, made ready. */
export interface Workplace {
  readonly folder: string;
  readonly write: (file: string, text: string) => Promise<void>;
  /** @param secrets files in the folder. */
  readonly start: (...secrets: readonly string[]) => Promise<Consumer>;
  /** Starts it at the port that another one had. */
  readonly restart: (port: number, ...secrets: readonly string[]) => Promise<Consumer>;
  /** Starts it where it has to end by itself. @returns its exit code and what it printed. */
  readonly refuses: (
    ...secrets: readonly string[]
  ) => Promise<{ readonly code: number | null; readonly printed: string }>;
}

const EXAMPLE = fileURLToPath(new URL('../../examples/serve/', import.meta.url));

/** @param fated true to replace its function by `Language.fated`. */
export async function workplace(parent: string, language: Language, fated: boolean): Promise<Workplace> {
  const folder = await mkdtemp(join(parent, `${language.name}-`));
  const write = (file: string, text: string): Promise<void> => writeFile(join(folder, file), text);
  const source = await readFile(join(EXAMPLE, language.file), 'utf8');
  const changed = source.replace(language.handle, () => language.fated);
  if (changed === source) throw new Error(`${language.file} has no function handle`);
  await write(language.file, fated ? changed : source);
  const [builder, ...args] = language.build;
  if (builder !== undefined) {
    const { status, stderr } = spawnSync(builder, args, { cwd: folder, env: ENV, encoding: 'utf8' });
    if (status !== 0) throw new Error(stderr);
  }
  const begin = (port: number, secrets: readonly string[]) => {
    const [program = '', ...parts] = [...language.start, ...secrets];
    const child = spawn(program, parts, { cwd: folder, env: { ...ENV, PORT: String(port) } });
    let printed = '';
    let stdout = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text;
      printed += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      printed += text;
    });
    const ended = once(child, 'close').then(([code]) => code as number | null);
    return { child, ended, printed: () => printed, lines: () => stdout.split('\n').filter(Boolean) };
  };
  async function restart(port: number, ...secrets: readonly string[]): Promise<Consumer> {
    const { child, ended, printed, lines } = begin(port, secrets);
    while (!(await isOpen(port))) {
      if (child.exitCode !== null || child.signalCode !== null)
        throw new Error(`${language.file} ended:\n${printed()}`);
      await sleep(20);
    }
    return {
      origin: `http://127.0.0.1:${port}`,
      port,
      lines,
      printed,
      ended,
      [Symbol.asyncDispose]: async () => {
        child.kill('SIGKILL');
        await ended;
      },
    };
  }

  return {
    folder,
    write,
    restart,
    start: async (...secrets) => restart(await freePort(), ...secrets),
    refuses: async (...secrets) => {
      const port = await freePort();
      const { child, ended, printed } = begin(port, secrets);
      // One that starts all the same is ended here, which is no exit code.
      while (child.exitCode === null && child.signalCode === null) {
        if (await isOpen(port)) child.kill('SIGKILL');
        await sleep(20);
      }
      return { code: await ended, printed: printed() };
    },
  };
}

/** Go keeps what it built where its user does; Python writes nothing beside the example. */
const ENV: NodeJS.ProcessEnv = { ...outside(), PYTHONDONTWRITEBYTECODE: '1' };

function isOpen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('error', () => resolve(false));
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
  });
}

/** An answer, and if it came over a connection that had brought another one before. */
export interface Answered {
  readonly status: number;
  readonly text: string;
  readonly reused: boolean;
}

export interface Posted {
  readonly headers: Readonly<Record<string, string>>;
  /** Null: the headers alone are sent, and the body never comes. */
  readonly body: string | null;
  readonly path?: string;
  readonly method?: string;
  readonly agent?: Agent;
}

/** @throws Error where the connection ends without an answer. */
export function post(
  origin: string,
  { headers, body, path = '/events', method = 'POST', agent }: Posted,
): Promise<Answered> {
  return new Promise((resolve, reject) => {
    const sent = request(origin + path, { method, headers, agent: agent ?? false });
    sent.on('error', reject);
    sent.on('response', (answer) => {
      let text = '';
      answer.setEncoding('utf8').on('data', (part: string) => {
        text += part;
      });
      answer.on('error', reject);
      answer.on('end', () => {
        resolve({ status: answer.statusCode ?? 0, text, reused: sent.reusedSocket });
        if (body === null) sent.destroy();
      });
    });
    if (body === null) sent.flushHeaders();
    else sent.end(body);
  });
}
