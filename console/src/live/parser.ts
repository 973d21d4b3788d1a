/** Reads server-sent events from pieces of text that end anywhere. */
export class Parser {
    private rest = "";
    private kind = "";
    private id: string | null = null;
    private data: string[] = [];

    constructor(private readonly send: (kind: string, id: string | null, data: string) => void) {}

    take(text: string): void {
        const lines = (this.rest + text).split("\n");
        this.rest = lines.pop() ?? "";
        for (const line of lines) this.takeLine(line.replace(/\r$/, ""));
    }

    private takeLine(line: string): void {
        if (line === "") {
            this.send(this.kind || "message", this.id, this.data.join("\n"));
            [this.kind, this.id, this.data] = ["", null, []];
            return;
        }
        const colon = line.indexOf(":");
        if (colon === 0) return; // a comment
        const name = colon < 0 ? line : line.slice(0, colon);
        const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
        if (name === "event") this.kind = value;
        else if (name === "id") this.id = value;
        else if (name === "data") this.data.push(value);
    }
}
