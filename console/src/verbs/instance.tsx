/** The image of an instance, which deployments take from the node. */

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";

import { explain, get, patch } from "../api/client";
import { usePermission } from "../api/permissions";
import { Action } from "../components/action";
import { Problem } from "../components/loading";
import { toast } from "../components/toasts";
import { part } from "../paths";
import { changesOf, imageOf, isOther, type Image, type Info } from "./image";

const RULE = "baremetal:node:update_instance_info";

interface InstanceProps {
    node: string;
    /** Called when another image is typed than is saved, and when none is any more. */
    onChanged: (changed: boolean) => void;
    saved: () => void;
}

/** Return the image of a node as it is typed, and how it is saved. */
function useImage({ node, onChanged, saved }: InstanceProps) {
    const [info, setInfo] = useState<Info | null>(null);
    const [image, setImage] = useState<Image>({ source: "", checksum: "" });
    const [error, setError] = useState<string | null>(null);
    const [isBusy, setBusy] = useState(false);
    const path = `/v1/nodes/${part(node)}`;
    const isChanged = info !== null && isOther(info, image);
    const show = ({ instance_info: found }: { instance_info: Info }): void => {
        setInfo(found);
        setImage(imageOf(found));
        setError(null);
    };
    const refuse = (problem: unknown): void => setError(explain(problem));
    const read = (): void => void get<{ instance_info: Info }>(`${path}?fields=instance_info`).then(show).catch(refuse);
    const save = async (): Promise<void> => {
        if (info === null || isBusy) return;
        setBusy(true);
        try {
            show(await patch<{ instance_info: Info }>(path, changesOf(info, image)));
            toast("The image is saved with the node.");
            saved();
        } catch (problem) {
            refuse(problem);
        } finally {
            setBusy(false);
        }
    };
    useEffect(read, [path]);
    useEffect(() => onChanged(isChanged), [isChanged]);
    return { info, image, setImage, isChanged, isBusy, error, read, save };
}

/** Shows the image that a deployment installs, to be changed before it. */
export function InstanceFields(props: InstanceProps): JSX.Element | null {
    const { info, image, setImage, isChanged, isBusy, error, read, save } = useImage(props);
    const refusal = usePermission(props.node)(RULE).reason;
    if (info === null) return error === null ? null : <Problem text={error} retry={read} />;
    return (
        <fieldset class="fields">
            <legend>Image of the instance</legend>
            <label class="field">
                <span>Address</span>
                <input
                    type="text"
                    name="image_source"
                    value={image.source}
                    readOnly={refusal !== null}
                    spellcheck={false}
                    placeholder="https://images.example.com/debian.img"
                    onInput={(event) => setImage({ ...image, source: event.currentTarget.value })}
                />
            </label>
            <label class="field">
                <span>Checksum</span>
                <input
                    type="text"
                    name="image_os_hash_value"
                    class="mono"
                    value={image.checksum}
                    readOnly={refusal !== null}
                    spellcheck={false}
                    onInput={(event) => setImage({ ...image, checksum: event.currentTarget.value })}
                />
                <span class="field-note">SHA-256 or SHA-512 of the file</span>
            </label>
            {error && <Problem text={error} />}
            <Action reason={refusal ?? (isChanged ? null : "This image is saved.")} run={() => isBusy || void save()}>
                Save with the node
            </Action>
        </fieldset>
    );
}
